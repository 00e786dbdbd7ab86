"""What fio printed, of any of its versions since 2.0: its JSON, and its logs."""
