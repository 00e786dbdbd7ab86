"""``python -m headstack``."""

from headstack.start import main

main()
