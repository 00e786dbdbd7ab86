"""Commands for measurements and tests of drives."""
