"""Commands for traces."""
