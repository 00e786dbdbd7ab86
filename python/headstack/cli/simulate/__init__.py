"""Commands for runs, sweeps and the explorer."""
