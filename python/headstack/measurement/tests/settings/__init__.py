"""Settings of programs, from the properties of a measured device or a model."""
