"""``InconclusiveError``, a test outcome that is neither passed nor failed. It has a module of its own, since pytest
loads it in every run.
"""


class InconclusiveError(Exception):
    """Raised if a test has no conclusion: the machine was too busy for its latencies, or checked too few states."""
