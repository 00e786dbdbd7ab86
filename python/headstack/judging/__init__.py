"""Whether disks are quietly slow: what monitoring says of them, held against what was to be expected."""
