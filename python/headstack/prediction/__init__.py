"""The predictor: characterizes a system once by low-level tests, and then predicts any workload without a
simulation."""
