"""Diagnosis of this machine, read-only: devices, limits, stack, pressure, and what is worth changing."""
