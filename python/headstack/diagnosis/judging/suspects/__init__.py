"""Weighs what makes requests slow: the device, a limit, the queue, the host, or a neighbour."""
