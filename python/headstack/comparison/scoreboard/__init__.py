"""The open scoreboard: errors of predictions on measured devices, read from folders of TOML and CSV files."""
