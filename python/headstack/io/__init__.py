"""Files, tables, units, signals and terminals: what every package needs and that knows nothing of storage."""
