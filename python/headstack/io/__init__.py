"""Files, tables, units, signals and terminals. This package knows nothing of storage and is imported by all others."""
