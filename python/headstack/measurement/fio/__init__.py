"""Readers of fio's output since version 2.0: its JSON, and its logs."""
