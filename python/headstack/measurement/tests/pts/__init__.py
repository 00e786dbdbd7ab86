"""Tests of solid-state drives by SNIA's Solid State Storage Performance Test Specification (PTS)."""
