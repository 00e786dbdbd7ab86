"""Predictions per second of a system: `predict.py SYSTEM [--smoke]` prints a line of JSON.

It predicts random environments and divides by the processor time of one core, without the start of Python. The system
is characterized first if necessary. `--smoke` characterizes and predicts as little as possible.
"""

import json
import sys
import tempfile
import time
from dataclasses import replace

from headstack.catalogue.system import load_system
from headstack.prediction.calibration import draw_environments
from headstack.prediction.grid import Bench
from headstack.prediction.predictions import predict_all
from headstack.prediction.predictor import Axes, characterization_of

# The fewest knots between which a table can be interpolated.
SMOKE = Axes(
    depths=(1, 4),
    sizes_bytes=(4096, 65536),
    range_steps=(32,),
    streams=(2,),
    switches=(0.0, 1.0),
    random_shares=(0.3, 1.0),
    read_shares=(0.0, 1.0),
    mixed_sizes_bytes=(4096,),
    mixed_ranges=(0,),
    hot_shares=(0.8,),
    hot_ranges=(1,),
    open_shares=(0, 1),
    loads=(0.2, 0.8),
    requests=200,
    warm_up=20,
    environments=50,
)

name, *options = sys.argv[1:]
smoke = options == ["--smoke"]
COUNT = 20 if smoke else 4_000
axes = SMOKE if smoke else Axes()

system = load_system(name)
with tempfile.TemporaryDirectory() as folder:
    tested = characterization_of(system, axes=axes, store=folder if smoke else None)
environments = [one for one, _ in draw_environments(Bench.of(system), replace(axes, environments=COUNT))]
predict_all(environments[:1], [tested])  # Initializes the tables.
asked = {"closed": environments, "open": [one.at_rate(20) for one in environments[: COUNT // 10]]}
figures = {}
for loops, ones in asked.items():
    start = time.process_time()
    predict_all(ones, [tested])
    figures[loops] = len(ones) / (time.process_time() - start)
print(json.dumps(figures))
