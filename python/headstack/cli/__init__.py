"""The command line: arguments in, the same API as in Python, tables out."""
