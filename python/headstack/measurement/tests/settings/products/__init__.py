"""The products: one file each, with the formulas of their settings."""
