"""Inspection of storage devices, and detection of slow ones."""
