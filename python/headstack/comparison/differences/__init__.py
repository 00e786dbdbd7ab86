"""Determines whether the difference between two sets of runs is significant, and how large it is."""
