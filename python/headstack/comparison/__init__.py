"""Compares measurements with predictions, runs with runs, and models with published figures. See
docs/design/comparing.md.
"""
