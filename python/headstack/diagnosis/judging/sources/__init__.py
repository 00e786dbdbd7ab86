"""Readers of monitoring data, recognised by content, in parts that fit into memory."""
