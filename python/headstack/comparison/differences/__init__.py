"""Whether the difference between two sets of runs is real, and how large it is."""
