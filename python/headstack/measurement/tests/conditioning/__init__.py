"""Conditioning of a module: all of its devices written and read as one stream."""
