"""The families of devices that a twin is fitted to: disks, flash, arrays and volumes."""
