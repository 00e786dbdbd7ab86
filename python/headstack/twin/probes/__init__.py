"""Probes of devices, one file per property."""
