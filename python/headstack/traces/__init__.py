"""Traces: import, analysis, caches, volumes, twins of traces, and replay on simulated systems."""
