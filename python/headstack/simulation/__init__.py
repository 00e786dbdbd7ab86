"""Runs and sweeps of simulated systems, on this machine or on a cluster."""
