"""Tests of SSDs by SNIA's Solid State Storage Performance Test Specification (PTS)."""
