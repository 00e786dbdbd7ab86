"""Commands for studies and fits."""
