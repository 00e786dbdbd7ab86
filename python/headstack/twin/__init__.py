"""The twin of a device: a description that was learnt from its response times alone."""
