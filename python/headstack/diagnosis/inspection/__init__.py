"""Inspection of storage devices: health data from devices or saved outputs, compared, judged and recorded."""
