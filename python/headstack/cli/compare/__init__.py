"""Commands for comparisons, validation and pictures."""
