"""What is asked of a device to learn something of it, one file a matter."""
