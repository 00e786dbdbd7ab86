"""Crash tests of real stores: configurations with known bugs that must be found, and others that must keep their
guarantees.
"""
