"""Measurements of files, devices, exports and trees of files, and tests of drives."""
