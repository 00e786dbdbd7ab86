"""Tests of drives and modules by fixed procedures."""
