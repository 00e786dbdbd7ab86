"""Traces: import, analysis, cache simulation, volumes, synthetic traces, and replay on simulated systems."""
