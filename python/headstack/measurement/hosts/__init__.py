"""Measurements of one system from many hosts at the same time: an agent on each, one clock, one result."""
