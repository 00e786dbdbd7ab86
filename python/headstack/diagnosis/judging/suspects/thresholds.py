"""Shares from which a limit or a busy host matters, for ``judge`` and ``doctor``."""

AT_LIMIT, BELOW_LIMIT = 0.97, 0.9
"""Shares of a stated limit: real limiters hold 1 to 2 % below it (samples of a network block device at 250 and 400/s),
and below 90 % a mean over intervals leaves no time at the limit."""

CPU_FULL, STEAL, PRESSURE = 0.1, 0.1, 0.1
"""Idle share below which a host is full, and shares of steal and of stalls by I/O from which they matter."""
