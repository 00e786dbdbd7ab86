"""Job files of fio, Iometer and vdbench: measured, simulated, and reported in fio's own JSON."""
