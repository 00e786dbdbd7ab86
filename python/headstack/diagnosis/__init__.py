"""What devices say of themselves, and which of them are slow."""
