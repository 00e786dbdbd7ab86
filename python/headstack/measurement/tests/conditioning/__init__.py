"""Conditioning of a module: writes and reads all devices of the module as one stream."""
