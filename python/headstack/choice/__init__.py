"""Chooses the system that does a job at the lowest price, power, bay count or latency, with the evidence and the
sensitivity. See docs/design/choosing.md.
"""
