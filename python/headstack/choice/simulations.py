"""``Simulations``: runs of candidates in chunks, on all cores or a cluster, stored when finished and never repeated."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeAlias

from headstack import _native
from headstack._native import InputError, RunError
from headstack.catalogue.array import Array
from headstack.catalogue.options import Spec
from headstack.catalogue.system import load_system
from headstack.choice.blueprint import Blueprint
from headstack.choice.job import Demand, Job, recorded_rate, recorded_requests
from headstack.choice.limits import Estimate, Limit, estimate_from_row
from headstack.choice.rebuilding import schedule_while_rebuilding
from headstack.choice.run_rows import COLUMNS, RunRow
from headstack.choice.space import Candidate, Family, array_of, blueprint_of
from headstack.choice.sustained import SustainedLoad, array_costs, sustained_load, volume_costs
from headstack.io.atomic_files import write_text
from headstack.report.figures import RunInputs
from headstack.results.explorer_queries import figures_of
from headstack.results.intervals.described import described
from headstack.results.intervals.model_errors import DESCRIBED, ModelError, bare, model_errors
from headstack.results.results import Results
from headstack.simulation.chunks.chunk import POINTS_MAX, Chunk, cut
from headstack.simulation.chunks.chunked import finish, rows, run_chunks
from headstack.traces.replays import replays_of, specify

SEEDS = 8
"""Number of runs with other seeds, each 1/8 as long, if one run has no interval of a figure, for example of reads
only."""
STUDENT_975 = 2.365
"""The 97.5 % point of Student's t for seven degrees of freedom (tables)."""
WARM_UP_SHARE = 8
"""The warm-up has one request per this many measured ones, and at least 500."""
PRELOADED_FROM = 8_000
"""Minimum requests of a run for which a cache is preloaded; shorter ones only detect large misses."""
PRELOAD_MAX = 1_000_000
"""Maximum number of preload requests, which take 0.25 s."""
PAGE_BYTES = 64 << 10
"""Page size of a controller's cache whose file does not state it: a random request occupies one."""
FULL_CAPACITY_SHARE = 0.999
"""If more than this share of a system is used, all of it is: its capacity is only known up to roundings to stripes,
which are below 0.1 %, and a range must not end beyond it."""
REBUILDING = "a member is rebuilt"
"""Name of the fault schedule in runs whose limits must be met while degraded."""

Key: TypeAlias = tuple[object, ...]
"""Key of a run: everything that distinguishes it from other runs."""
Progress = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Trial:
    """A run to simulate: a candidate, the number of requests, and the load."""

    candidate: Candidate
    requests: int
    factor: float = 1.0
    """Factor that multiplies the load."""
    rebuilding: bool = False
    seed: int = 1


@dataclass
class OverloadRates:
    """The throughput of overloaded systems, which is their maximum."""

    _by_family: dict[str, list[tuple[int, float]]] = field(default_factory=dict)

    def add(self, candidate: Candidate, iops: float) -> None:
        """Adds the throughput of a run whose queue grew without bound."""
        self._by_family.setdefault(candidate.family.name, []).append((candidate.drives, iops))

    def max_rate(self, candidate: Candidate) -> float:
        """Returns the maximum requests per second of a system, assuming that more drives of the same kind carry no
        less; infinite if unknown."""
        rates = self._by_family.get(candidate.family.name, ())
        return min((iops for drives, iops in rates if drives >= candidate.drives), default=math.inf)


@dataclass
class Simulations:
    """All runs of a choice."""

    job: Job
    store: str | os.PathLike[str] | None = None
    executor: str = "local"
    on_progress: Progress | None = None
    """Callback for the number of finished runs."""
    overload_rates: OverloadRates = field(default_factory=OverloadRates)
    _rows: dict[Key, RunRow] = field(default_factory=dict)
    _of_kind: dict[Key, tuple[float | None, bool]] = field(default_factory=dict)
    """The figure of one kind of request, and whether the queue grows without bound."""
    _costs: dict[str, list[list[float]]] = field(default_factory=dict)
    """Seconds of each limit that a request of each class takes, by volume or host."""
    runs: int = 0
    requests: int = 0
    under_way: float = 0.0
    """Completed share of current runs, in runs."""

    def rows(self, trials: Sequence[Trial], demand: Demand | None = None) -> list[RunRow]:
        """Returns the row of each run, in order; earlier runs are not repeated."""
        demand_to_run = demand or self.job.demand
        keys = [self._key(trial, demand_to_run) for trial in trials]
        missing = {key: trial for key, trial in zip(keys, trials, strict=True) if key not in self._rows}
        if missing:
            results = {key: RunRow(impossible=why) for key, trial in missing.items() if (why := _never_rebuilds(trial))}
            possible = {key: trial for key, trial in missing.items() if key not in results}
            if possible:
                results |= (
                    self._replays(possible, demand_to_run)
                    if demand_to_run.trace is not None
                    else self._runs(possible, demand_to_run)
                )
            self._rows |= results
            self._check(missing, results)
            for key, row in results.items():
                if row.saturated and (iops := row.figures["iops"]) and not missing[key].rebuilding:
                    self.overload_rates.add(missing[key].candidate, iops)
            self.runs, self.under_way = self.runs + len(missing), 0.0
            self.requests += sum(row.requests for row in results.values())
            if self.on_progress is not None:
                self.on_progress(self.runs)
        return [self._rows[key] for key in keys]

    def _check(self, trials: dict[Key, Trial], results: dict[Key, RunRow]) -> None:
        """Raises ``InputError`` if every run so far was impossible, because then the job is invalid."""
        if not self._of_kind and all(row.impossible is not None for row in self._rows.values()):
            key, row = next(iter(results.items()))
            raise InputError(f"{trials[key].candidate.name}: cannot run the job: {row.impossible}")

    def estimate(
        self, limit: Limit, candidates: Sequence[Candidate], requests: int, factor: float = 1.0
    ) -> list[Estimate]:
        """Returns the figure of a limit for several candidates, after this many requests each."""
        loads = [self.sustained_load(candidate, factor) for candidate in candidates]
        if limit.kind:
            estimates = self._by_kind(limit, candidates, requests, factor)
            run_requests = self._part(limit, requests)
        else:
            rows = self.rows([Trial(candidate, requests, factor, limit.rebuilding) for candidate in candidates])
            estimates, run_requests = [self._estimate_from_row(limit, row, requests) for row in rows], requests
        return [each.under(limit, load, run_requests) for each, load in zip(estimates, loads, strict=True)]

    def sustained_load(self, candidate: Candidate, factor: float = 1.0) -> SustainedLoad:
        """Returns the load of the job, multiplied by ``factor``, on the limits of a cloud volume or of a host."""
        classes = self.job.demand.open_classes
        if not classes:
            return SustainedLoad()
        host = candidate.family.host
        name = candidate.name if host is None else host.name
        if name not in self._costs:
            description: Any = array_of(candidate).description
            costs_of = volume_costs if "limits" in description else array_costs
            self._costs[name] = costs_of(description, classes)
        return sustained_load(self._costs[name], classes, factor)

    def _estimate_from_row(self, limit: Limit, row: RunRow, requests: int) -> Estimate:
        if row.impossible is not None:
            return Estimate(None, None, None, 0, row.impossible, impossible=True)
        estimate = estimate_from_row(limit, row)
        trace = self.job.demand.trace
        if trace is not None and requests >= recorded_requests(trace) and not estimate.piles_up:
            # The whole trace was replayed: there is no sampling error.
            return Estimate(estimate.value, estimate.value, estimate.value, estimate.requests)
        return estimate

    def _key(self, trial: Trial, demand: Demand) -> Key:
        return (
            *(
                trial.candidate.family.path,
                trial.candidate.fields(),
                demand.name,
                demand.rate_per_s,
                demand.depth,
                trial.factor,
            ),
            *(trial.requests, trial.rebuilding, trial.seed, self.footprint_bytes(trial.candidate)),
        )

    def footprint_bytes(self, candidate: Candidate) -> int:
        """Returns the number of bytes of a system that the requests address, which is the size of the data."""
        whole, stored = candidate.usable_bytes, self.job.stored_bytes
        is_whole = self.job.spread or not stored or stored > FULL_CAPACITY_SHARE * whole
        return whole if is_whole else stored // 4096 * 4096

    def _options(self, trial: Trial, demand: Demand) -> list[tuple[str, str]]:
        """Returns the options of a run, in a fixed order."""
        scaled = demand.scaled(trial.factor)
        options = []
        footprint_bytes = self.footprint_bytes(trial.candidate)
        if footprint_bytes < trial.candidate.usable_bytes:
            options.append(("range", f"{footprint_bytes}B"))
        if scaled.rate_per_s is not None:
            options.append(("rate", f"{scaled.rate_per_s:.10g}"))
        elif scaled.depth is not None:
            options.append(("depth", str(scaled.depth)))
        options.append(("requests", str(trial.requests)))
        options.append(("warm_up", str(max(500, trial.requests // WARM_UP_SHARE))))
        preload = self._preload(trial)
        if preload:
            options.append(("preload", str(preload)))
        options.append(("seed", str(trial.seed)))
        model = trial.candidate.family.model
        if model is not None and model.drive.kind == "ssd":
            options.append(("state", "steady"))
        if trial.rebuilding:
            options.append(("faults", REBUILDING))
        return options

    def _preload(self, trial: Trial) -> int:
        """Returns the number of requests that fill a cache before all but the first short runs: its capacity and 50 %
        more, since some requests hit. As in service, the cache is then full, and at its steady dirty level."""
        host = trial.candidate.family.host
        if host is None or not host.cache_bytes or trial.requests < PRELOADED_FROM:
            return 0
        cache_setting = dict(trial.candidate.family.settings).get("cache")
        cache_bytes = _native.parse_bytes(cache_setting) if cache_setting else host.cache_bytes
        classes = self.job.demand.classes
        mean_bytes = sum(request_class.share * request_class.size_bytes for request_class in classes)
        return min(PRELOAD_MAX, math.ceil(1.5 * cache_bytes / max(mean_bytes, PAGE_BYTES)))

    def _runs(self, trials: dict[Key, Trial], demand: Demand) -> dict[Key, RunRow]:
        """Runs a workload or a scenario; configurations that set the same fields run together."""
        alike: dict[tuple[str, tuple[str, ...], tuple[str, ...], str], list[tuple[Key, Trial, list[str]]]] = {}
        for key, trial in trials.items():
            fields = trial.candidate.fields()
            options = self._options(trial, demand)
            fields_of, options_of = tuple(name for name, _ in fields), tuple(name for name, _ in options)
            schedule = rebuilding_schedule(trial.candidate) if trial.rebuilding else ""
            values = [value for _, value in (*fields, *options)]
            alike.setdefault((trial.candidate.family.path, fields_of, options_of, schedule), []).append(
                (key, trial, values)
            )
        chunks: list[Chunk] = []
        keys: list[Key] = []
        for (_, fields_of, options_of, schedule), members in alike.items():
            family = members[0][1].candidate.family
            points = _points(family.name, family, demand, fields_of, options_of, schedule)
            # Group configurations by drive: a chunk completes each of its drives once.
            members.sort(key=lambda member: member[2])
            for portion in cut(members, _cost_s, POINTS_MAX):
                chunks.append(Chunk.of(points.chunk_content([values for _, _, values in portion]), len(keys)))
                keys += [key for key, _, _ in portion]
        paths = finish(
            iter(chunks), len(keys), store=self.store, executor=self.executor, progress=partial(self._hear, len(keys))
        )
        results: dict[Key, RunRow] = {}
        for key, cells_of_run in zip(keys, rows(paths, COLUMNS), strict=True):
            cells = dict(zip(COLUMNS, cells_of_run, strict=True))
            if cells["failed"] is not None:
                raise RunError(f"{trials[key].candidate.name}: {cells['failed']}")
            results[key] = RunRow.of(cells)
        return results

    def _hear(self, runs: int, share: float) -> None:
        """Reports current runs, of which this share is done."""
        self.under_way = runs * share
        if self.on_progress is not None:
            self.on_progress(self.runs)

    def _replays(self, trials: dict[Key, Trial], demand: Demand) -> dict[Key, RunRow]:
        """Replays a trace, with equal lengths and speeds together, so that it is read once."""
        trace = demand.trace
        assert trace is not None
        alike: dict[tuple[int, float], list[tuple[Key, Trial]]] = {}
        for key, trial in trials.items():
            if trial.rebuilding:
                raise InputError(f"{demand.name}: while rebuilding: traces are replayed only in normal service")
            alike.setdefault((trial.requests, trial.factor), []).append((key, trial))
        recorded = demand.rate_per_s or 1.0
        results: dict[Key, RunRow] = {}
        for (requests, factor), members in alike.items():
            settings = {
                "depth": None,
                "time_scale": "1",
                "within": None,
                "outside": "fold",
                "requests": requests,
                "time": None,
            }
            scale = recorded_rate(trace) / (recorded * factor)
            settings["time_scale"] = f"{scale:.10g}" if scale != 1 else "1"
            systems = [array_of(trial.candidate) for _, trial in members]
            specs = specify(trace, systems, replays_of(trace, ["timed"], settings), {})
            replays = Results(_native.replay([bare(spec) for spec in specs])[0])
            for (key, _), row in zip(members, replays, strict=True):
                if not row["checks_passed"]:
                    raise RunError(f"{row['system']}: a replay failed an internal check")
                results[key] = RunRow.of(row)
        return results

    def _by_kind(self, limit: Limit, candidates: Sequence[Candidate], requests: int, factor: float) -> list[Estimate]:
        """Returns the results for a limit on only reads or only writes: runs with several seeds, each with a part of
        the requests, and Student's interval of their figures."""
        part = self._part(limit, requests)
        whys = [_never_rebuilds(Trial(candidate, part, factor, limit.rebuilding)) for candidate in candidates]
        if any(whys):
            rebuildable = [candidate for candidate, why in zip(candidates, whys, strict=True) if not why]
            rebuilt = iter(self._by_kind(limit, rebuildable, requests, factor) if rebuildable else [])
            return [Estimate(None, None, None, 0, why, impossible=True) if why else next(rebuilt) for why in whys]
        trials = [
            Trial(candidate, part, factor, limit.rebuilding, seed + 1)
            for candidate in candidates
            for seed in range(SEEDS)
        ]
        values = self._figures(limit, trials)
        estimates = []
        for number in range(len(candidates)):
            own = values[number * SEEDS : (number + 1) * SEEDS]
            known_values = [value for value, _ in own if value is not None]
            piles_up = any(piled for _, piled in own)
            if len(known_values) < SEEDS:
                estimates.append(Estimate(None, None, None, 0, f"no {limit.kind} completed", piles_up=piles_up))
                continue
            mean = sum(known_values) / SEEDS
            deviation = math.sqrt(sum((value - mean) ** 2 for value in known_values) / (SEEDS - 1))
            half = STUDENT_975 * deviation / math.sqrt(SEEDS)
            estimates.append(Estimate(mean, mean - half, mean + half, part * SEEDS, piles_up=piles_up))
        return estimates

    def _part(self, limit: Limit, requests: int) -> int:
        """Returns the requests of each of several runs with other seeds."""
        return max(limit.requests_min, requests // SEEDS)

    def _figures(self, limit: Limit, trials: Sequence[Trial]) -> list[tuple[float | None, bool]]:
        """Returns the figure of a limit on one kind of request in each run, and whether the queue grows without
        bound."""
        quantity = f"{limit.kind}.{limit.figure}"
        demand = self.job.demand
        if demand.trace is not None:
            raise InputError(f"{limit.text}: for a trace, limits apply to all requests together", key="limit")
        keys = [(quantity, *self._key(trial, demand)) for trial in trials]
        missing = {key: trial for key, trial in zip(keys, trials, strict=True) if key not in self._of_kind}
        if missing:
            specs = [self._spec(trial, demand) for trial in missing.values()]
            results = run_chunks(specs, store=self.store, executor=self.executor)
            figures = of_kind_ms(results, limit.kind, limit.quantile)
            self.runs += len(missing)
            for index, (key, row) in enumerate(zip(missing, results, strict=True)):
                self.requests += int(row["requests"] or 0)
                value = figures[index]
                self._of_kind[key] = (value, bool(row["saturated"]))
        return [self._of_kind[key] for key in keys]

    def _spec(self, trial: Trial, demand: Demand) -> Spec:
        """Returns the specification of a run."""
        fields, options = trial.candidate.fields(), self._options(trial, demand)
        schedule = rebuilding_schedule(trial.candidate) if trial.rebuilding else ""
        names_of, options_of = [name for name, _ in fields], [name for name, _ in options]
        points = _points(trial.candidate.name, trial.candidate.family, demand, names_of, options_of, schedule)
        (spec,) = _native.specifications(points.chunk_content([[value for _, value in (*fields, *options)]]))
        if "system" not in spec:
            raise InputError(f"{trial.candidate.name}: {spec}")
        return spec

    def inputs_of(self, trial: Trial, row: RunRow) -> RunInputs:
        """Returns the inputs of a run, so that it can be recomputed, with its result."""
        candidate, demand = trial.candidate, self.job.demand
        figures, why = figures_of(dict(row.figures)), ""
        if demand.blueprint is None:
            why = "the page does not contain the trace that was replayed"
        values = dict([*candidate.fields(), *self._options(trial, demand)])
        host = candidate.family.host
        name = candidate.family.name if host is None else host.name
        return RunInputs(
            name, demand.name, values, figures, None, blueprint_of(candidate.family), demand.blueprint, why
        )

    def model_error(self, trial: Trial) -> ModelError | None:
        """Returns the model's error of a system in a run, as in complete results."""
        demand = self.job.demand
        (row,) = self.rows([trial])
        system = load_system(trial.candidate.family.path)
        if demand.trace is not None:
            return None
        spec = self._spec(trial, demand) | {DESCRIBED: described(system)._replace(sample=())}
        (error,) = model_errors([spec], [row.figures], lambda specs: _native.run(specs))
        return error


@dataclass(frozen=True)
class Points:
    """Runs of one system with different values of its file and options."""

    system: str
    """The name of the system."""
    blueprint: Blueprint
    demand: Blueprint | None
    fields: Sequence[str]
    """The keys of the system's file that vary."""
    options: Sequence[str]
    """The options of runs that vary."""
    schedule: str = ""
    """The faults of each run, as a file; empty if there are none."""

    def chunk_content(self, points: Sequence[Sequence[str]]) -> dict[str, object]:
        """Returns the content of a chunk; each point has values of the fields, then of the options."""
        names = [*self.fields, *self.options]
        faults = {"faults": {REBUILDING: faults_of(self.schedule)}} if self.schedule else {}
        return {
            "system": {"name": self.system, "part": None, "blueprint": self.blueprint},
            "demand": {"blueprint": self.demand},
            "fields": names,
            "kinds": ["system"] * len(self.fields) + ["option"] * len(self.options),
            "columns": names,
            "units": [None] * len(names),
            "whole": False,
            "points": points,
            **faults,
        }


def _points(
    name: str,
    family: Family,
    demand: Demand,
    fields: Sequence[str],
    options: Sequence[str],
    schedule: str,
) -> Points:
    """Returns points of candidates of a family."""
    return Points(name, blueprint_of(family), demand.blueprint, fields, options, schedule)


def _never_rebuilds(trial: Trial) -> str:
    """Returns the reason why a system is never rebuilding, if a limit must be met during rebuilds; otherwise empty."""
    if not trial.rebuilding:
        return ""
    if trial.candidate.family.model is None:
        return "while rebuilding: providers do not publish how volumes perform during repairs"
    return "" if trial.candidate.survives else "while rebuilding: a failed drive loses data, so there is no rebuild"


@cache
def rebuilding_schedule(candidate: Candidate) -> str:
    """Returns the fault schedule under which a member is rebuilt throughout a run."""
    array = array_of(candidate)
    if not isinstance(array, Array):
        raise InputError(f"{candidate.name}: while rebuilding: this system has no members")
    return schedule_while_rebuilding(array)


@cache
def faults_of(schedule: str) -> Mapping[str, Any]:
    """Returns the faults of a schedule, in the form of the compiled module."""
    with tempfile.TemporaryDirectory(prefix="headstack-") as folder:
        path = os.path.join(folder, "rebuilding.toml")
        write_text(path, schedule)
        return _native.load_faults(path)


def of_kind_ms(results: Results, kind: str, quantile: float | None) -> list[float | None]:
    """Returns for each run the mean response time of one kind of request, or a quantile from its histogram, whose bins
    are 0.1 % wide; ``None`` if there was no such request."""
    import duckdb  # start-up time

    bins = results.histograms()
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("bins", bins)
        rows = connection.execute(
            "select run, middle_ms, count from bins where kind = ? and figure = 'latency' order by run, middle_ms",
            [kind],
        ).fetchall()
    latencies_ms: list[float | None] = [None] * len(results)
    by_run: dict[int, list[tuple[float, int]]] = {}
    for run, middle_ms, count in rows:
        by_run.setdefault(run, []).append((middle_ms, count))
    for run, own in by_run.items():
        total = sum(count for _, count in own)
        if quantile is None:
            latencies_ms[run] = sum(middle_ms * count for middle_ms, count in own) / total
        else:
            left = math.ceil(quantile * total)
            for middle_ms, count in own:
                left -= count
                if left <= 0:
                    latencies_ms[run] = middle_ms
                    break
    return latencies_ms


def _cost_s(member: tuple[Any, Trial, Any]) -> float:
    """Estimates the time of a run on one core: docs/performance.md."""
    trial = member[1]
    return 1e-3 + trial.requests * (1.0 + 1.0 / WARM_UP_SHARE) * 3e-6
