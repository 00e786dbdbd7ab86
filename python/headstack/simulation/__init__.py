"""Runs and sweeps of simulated systems, here or on a cluster."""
