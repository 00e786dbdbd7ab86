"""Live exports: the simulated system as a block device of this machine. See docs/design/live.md."""
