"""Crash tests of real stores: configurations whose bugs have to be found, and others whose promises have to hold."""
