"""The predictor: low-level tests of a system once, then any workload without a simulation."""
