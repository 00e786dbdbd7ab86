"""Prediction intervals, learned from the model errors of measured devices; there is none with too few devices."""
