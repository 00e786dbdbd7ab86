"""Prediction intervals: the error of a model, learned from measured devices, and refused if too few were measured."""
