"""Conditioning of a module: all of its devices are written and read as one stream."""
