"""``python -m headstack``."""

from headstack.cli.start import main

main()
