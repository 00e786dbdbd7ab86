"""Detection of silently slow disks from monitoring data. See docs/design/judging.md."""
