"""Sources of monitoring, each recognised by its content, read in parts that memory holds."""
