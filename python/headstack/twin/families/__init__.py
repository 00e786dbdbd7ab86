"""Device families for calibrated models: disks, flash, arrays and volumes."""
