"""Reports: the figures and tables of a study or of runs, as one HTML file that needs no network, and as pictures."""
