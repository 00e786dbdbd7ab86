"""Predictions a second: `predict.py SYSTEM FILE.json`, the file being what `headstack characterize SYSTEM` wrote.

Of as many environments drawn at random. Prints predictions over the processor's time of one core, without the start of
Python.
"""

import sys
import time
from dataclasses import replace

from headstack.predictor import Axes, Characterization
from headstack.predictor.calibration import drawn
from headstack.predictor.predictions import predicted
from headstack.system import load_system

COUNT = 4_000

system, path = sys.argv[1:]
tested = Characterization.load(path)
axes = replace(Axes(), environments=COUNT)
environments = [environment for environment, _ in drawn(load_system(system), axes, tested.capacity_bytes)]
predicted(environments[:1], [tested])  # The tables are made ready.
arrivals = [one.at_rate(20) for one in environments[: COUNT // 10]]

for loops, asked in (("closed", environments), ("open", arrivals)):
    start = time.process_time()
    predictions = predicted(asked, [tested])
    print(f"{loops} loops: {len(predictions) / (time.process_time() - start):,.0f} predictions/s")
