"""Which system does a job at the least price, watts, bays or latency, with the proof and what would change it."""
