"""Job files of fio, Iometer and vdbench: measured, simulated, and answered in fio's own JSON."""
