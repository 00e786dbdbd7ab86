"""Predictions a second of a system: `predict.py SYSTEM`, a line of JSON.

Of environments drawn at random, over the processor's time of one core, without the start of Python. The system is
characterized first, unless that was done before.
"""

import json
import sys
import time
from dataclasses import replace

from headstack.predictor import Axes, characterization_of
from headstack.predictor.calibration import drawn
from headstack.predictor.grid import Bench
from headstack.predictor.predictions import predicted
from headstack.system import load_system

COUNT = 4_000

system = load_system(sys.argv[1])
tested = characterization_of(system)
environments = [one for one, _ in drawn(Bench.of(system), replace(Axes(), environments=COUNT))]
predicted(environments[:1], [tested])  # The tables are made ready.
asked = {"closed": environments, "open": [one.at_rate(20) for one in environments[: COUNT // 10]]}
figures = {}
for loops, ones in asked.items():
    start = time.process_time()
    predicted(ones, [tested])
    figures[loops] = len(ones) / (time.process_time() - start)
print(json.dumps(figures))
