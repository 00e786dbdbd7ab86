"""What storage devices say of themselves: read from the device or from saved outputs, compared, judged, kept."""
