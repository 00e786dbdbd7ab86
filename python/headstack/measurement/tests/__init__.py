"""Tests of drives and modules with a set procedure."""
