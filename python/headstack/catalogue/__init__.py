"""Drives, arrays, workloads and scenarios by name or from TOML files, data sheets and prices."""
