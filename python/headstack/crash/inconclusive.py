"""The outcome of a test that is neither passed nor failed. It stands alone, since pytest loads it in every run."""


class InconclusiveError(Exception):
    """A test that proves nothing: the machine was too busy for its times, or for the states that were to be tried."""
