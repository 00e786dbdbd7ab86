"""Whether disks are slow without saying so: monitoring held against what was to be expected."""
