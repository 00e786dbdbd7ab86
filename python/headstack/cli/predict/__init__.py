"""Commands for predictions, twins and choices."""
