"""``InconclusiveError``, a test outcome that is neither passed nor failed. It has a module of its own, since pytest
loads it in every run.
"""


class InconclusiveError(Exception):
    """A test without conclusion: the machine was too busy for its times, or for the states to be tried."""
