"""Measurements held against predictions, runs against runs, and models against published figures."""
