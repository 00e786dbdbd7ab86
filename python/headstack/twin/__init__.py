"""Calibrated models (twins) of devices: descriptions learned only from response times."""
