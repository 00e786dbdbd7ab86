"""Choosing: each option counts, what cannot be asked is said, and the answer is the system that was simulated."""

from __future__ import annotations

import datetime
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from headstack import _native
from headstack.choice import search
from headstack.choice.answer import SSD_STATE, Answer
from headstack.choice.bounds import Bounds
from headstack.choice.candidates import Candidates, candidates
from headstack.choice.choose import Chooser, _tell_apart
from headstack.choice.limits import Estimate, estimate_from_row, judge, limit_of
from headstack.choice.question_parser import parse_question
from headstack.choice.run_rows import RunRow
from headstack.choice.simulations import Trial
from headstack.choice.space import Candidate, array_of
from headstack.cli.predict.choosing import _build_search
from headstack.cli.predict.choosing import choose as command
from headstack.results.reasons import TooShort

DRIVE, HOST, FLASH = "exos-x16-16tb", "md-raid6-12x16tb", "dc-s3700-400gb"
JOB: dict[str, Any] = {
    "rates": [100],
    "limits": ["p99=80ms"],
    "capacity": "10TB",
    "among": [DRIVE],
    "hosts": [HOST],
    "on": "2019-07",
    "drives": (2, 8),
    "requests": 8000,
}
TYPED = (
    *("-w", "file-server", "--rate", "100", "--limit", "p99=80ms", "--capacity", "10TB", "--among", DRIVE),
    *("--hosts", HOST, "--on", "2019-07", "--requests", "8000"),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all: the same runs are asked for again and again."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def answer(store: Path) -> Answer:
    return hs.choose("file-server", **JOB, survive=1, store=store)


def parsed(*arguments: str) -> Chooser:
    """The question of a command line."""
    context = command.make_context("choose", list(arguments))
    given = dict(context.params)
    names = [*given.pop("job"), *given["workloads"]]
    chooser: Chooser = _build_search(names, given)
    return chooser


def typed(*arguments: str) -> Chooser:
    """The same with the job of the tests, of which what is given again goes first."""
    return parsed(*TYPED, *arguments)


def space_of(choosing: Chooser) -> Candidates:
    return candidates(choosing.space, choosing.job, choosing.book, choosing.estimate)


def members(*arguments: str) -> list[Candidate]:
    return [one for _, own in space_of(typed(*arguments)).families for one in own]


def names(*arguments: str) -> set[str]:
    return {one.name for one in members(*arguments)}


def of(found: list[Candidate], drives: int, level: str) -> Candidate:
    return next(one for one in found if (one.drives, one.family.level) == (drives, level))


# What is typed is asked.


def test_load_as_it_is_typed() -> None:
    assert typed().job.demand.rate_per_s == 100
    assert typed("--scale", "2x").job.demand.rate_per_s == 200
    assert typed("--scale", "0.5").job.demand.rate_per_s == 50
    grown = typed("--growth", "10", "--years", "2").job
    assert grown.demand.rate_per_s == pytest.approx(121)
    assert grown.capacity_bytes == pytest.approx(12.1e12)
    deep = parsed("oltp-8k", "--depth", "6", "--scale", "2x", "--limit", "mean=20ms").job.demand
    assert (deep.rate_per_s, deep.depth) == (None, 12)
    both = parsed("oltp-8k", "-w", "file-server", "--rate", "50", "--rate", "20", "--limit", "mean=20ms").job.demand
    assert both.is_scenario
    told = tomllib.loads(both.blueprint["text"] if both.blueprint else "")
    assert [one["access"]["arrivals"]["open"]["rate_per_s"] for one in told["streams"]] == [50, 20]


@pytest.mark.parametrize(
    ("text", "figure", "kind", "value"),
    [
        *[(f"{name}=20ms", name, "", 20) for name in ("mean", "p50", "p90", "p95", "p99", "p999")],
        ("p99.9=1s", "p999", "", 1000),
        ("read.p95=500us", "p95", "read", 0.5),
        ("write.mean=5ms", "mean", "write", 5),
        ("iops=4000", "iops", "", 4000),
        ("mb_per_s=400", "mb_per_s", "", 400),
    ],
)
def test_limits_as_they_are_typed(text: str, figure: str, kind: str, value: float) -> None:
    (_, limit) = typed("--limit", text).job.limits
    assert (limit.figure, limit.kind, limit.value) == (figure, kind, value)


def test_limits_hold_while_rebuilding_too() -> None:
    limits = typed("--limit", "iops=90", "--while", "rebuilding").job.limits
    assert [(one.figure, one.rebuilding) for one in limits] == [("p99", False), ("iops", False), ("p99", True)]


def test_what_must_be_stored() -> None:
    assert typed("--reserve", "20", "--compression", "2").job.usable_bytes == pytest.approx(10e12 / 2 / 0.8, rel=1e-6)
    small = {one.drives for one in members("--levels", "raid5")}
    large = {one.drives for one in members("--levels", "raid5", "--capacity", "100TB")}
    assert min(small) == 3
    assert min(large) == 8
    assert min(one.drives for one in members("--levels", "raid5", "--capacity", "100TB", "--reserve", "20%")) == 9
    assert min(one.drives for one in members("--levels", "raid5", "--capacity", "100TB", "--compression", "2")) == 5


def test_what_must_survive_and_fit() -> None:
    assert {one.survives for one in members()} == {0, 1, 2}
    assert {one.survives for one in members("--survive", "2")} == {2}
    assert max(one.drives for one in members()) == 24
    assert max(one.bays for one in members("--bays", "6")) == 6
    assert max(one.drives for one in members("--bays", "6", "--spares", "2")) == 4
    assert {one.bays - one.drives for one in members("--spares", "2")} == {2}
    most = max(one.watts for one in members())
    assert most / 3 < max(one.watts for one in members("--watts", f"{most / 2}")) <= most / 2
    assert 2000 < max(one.usd for one in members("--budget", "3000")) <= 3000


def test_what_is_paid(tmp_path: Path) -> None:
    power = tmp_path / "power.csv"
    power.write_text("item,price,currency,date,confidence,source\nkWh,0.1,USD,2019-06-30,A,a bill\n")
    plain, spare = of(members(), 4, "raid6"), of(members("--spares", "1"), 4, "raid6")
    assert plain.usd == pytest.approx(4 * (610 + 99))
    assert spare.usd == pytest.approx(5 * (610 + 99))
    run = space_of(typed("--years", "3", "--prices", str(power)))
    (one,) = [one for _, own in run.families for one in own if (one.drives, one.level) == (4, "raid6")]
    parts = {part.item: part for part in run.parts(one)}
    assert one.usd == pytest.approx(sum(part.quantity * part.usd for part in parts.values()))
    assert parts["kWh"].quantity == pytest.approx(one.watts / 1000 * 8766 * 1.5 * 3)
    assert parts[f"{DRIVE} replaced"].quantity == pytest.approx(4 * 1.57 / 100 * 3)
    cool = space_of(typed("--years", "3", "--prices", str(power), "--pue", "1.2", "--afr", "disk=3"))
    (other,) = [one for _, own in cool.families for one in own if (one.drives, one.level) == (4, "raid6")]
    parts = {part.item: part for part in cool.parts(other)}
    assert parts["kWh"].quantity == pytest.approx(one.watts / 1000 * 8766 * 1.2 * 3)
    assert parts[f"{DRIVE} replaced"].quantity == pytest.approx(4 * 3 / 100 * 3)
    named = space_of(typed("--years", "1", "--afr", f"{DRIVE}=4"))
    assert {family.model.afr_percent for family, _ in named.families if family.model} == {4}


def test_whose_prices(tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text(
        "item,price,currency,date,confidence,source\n"
        f"{DRIVE},100,USD,2019-06-30,A,a quote\nconstellation2-1tb,50,USD,2019-06-30,A,a quote\n"
    )
    assert of(members("--prices", str(mine)), 4, "raid6").usd == pytest.approx(4 * (100 + 99))
    assert of(members("--prices", str(mine), "--own-prices"), 4, "raid6").usd == pytest.approx(400)
    unpriced = ("--among", f"{DRIVE},constellation2-1tb")
    assert space_of(typed(*unpriced)).no_price == ["constellation2-1tb"]
    assert space_of(typed(*unpriced, "--prices", str(mine))).no_price == []
    disks = ("--among", "disk,ssd")
    assert names(*disks) < names(*disks, "--estimate-prices")
    assert typed().book.on == "2019-07"
    assert parsed("file-server", "--limit", "p99=1s").book.on == datetime.date.today().isoformat()


def test_which_drives(tmp_path: Path) -> None:
    def models(*arguments: str, **given: str) -> set[str]:
        found = space_of(parsed("file-server", "--rate", "9", "--limit", "p99=1s", "--on", "2019-07", *arguments))
        return {family.model.name for family, _ in found.families if family.model is not None}

    every = models()
    assert {DRIVE, FLASH} <= every
    assert models("--among", "ssd") == {name for name in every if hs.Drive.load(name).kind == "ssd"}
    assert DRIVE in models("--among", "nearline") < every
    assert models("--among", "15k,dc-s3700*") >= {FLASH, "cheetah-15k7-600"}
    assert models("--not", "ssd") == {name for name in every if hs.Drive.load(name).kind == "disk"}
    assert models("--not", "exos*") == {name for name in every if not name.startswith("exos")}
    own = tmp_path / "bought.toml"
    own.write_text(_native.system_blueprint(DRIVE, [])["text"])
    prices = tmp_path / "own.csv"
    prices.write_text("item,price,currency,date,confidence,source\nbought,55,USD,2019-06-30,A,a quote\n")
    assert models("--among", str(own), "--prices", str(prices)) == {"bought"}
    assert models("--among", f"{own},{DRIVE}", "--prices", str(prices)) == {"bought", DRIVE}


def test_which_hosts_and_levels(tmp_path: Path) -> None:
    hosts = {one.family.host.name for one in members("--hosts", f"{HOST},zfs-raidz2-12") if one.family.host}
    assert hosts == {HOST, "zfs-raidz2-12"}
    both = ("--hosts", f"{HOST},zfs-raidz2-12")
    assert {one.family.host.name for one in members(*both, "--not", "zfs*") if one.family.host} == {HOST}
    own = tmp_path / "mine.toml"
    own.write_text(f'base = "{HOST}"\nname = "mine"\n')
    found = members("--hosts", str(own))
    assert {one.family.host.name for one in found if one.family.host} == {"mine"}
    assert array_of(found[0]).description
    assert {one.family.level for one in members("--levels", "raid1,4+2")} == {"raid1", "4+2"}
    assert {one.drives for one in members("--levels", "4+2")} == {6, 12, 18, 24}
    assert {one.family.level for one in members(*both, "--levels", "raidz2,draid2:4d:1s,raid6")} == {
        *("raidz2", "draid2:4d:1s", "raid6")
    }
    assert "raid60" in {one.level for one in members()}
    assert {one.level for one in members("--not", "raid60,raid0")} == {"raid10", "raid5", "raid50", "raid6"}
    assert {one.drives for one in members("--drives", "5..7", "--levels", "raid5")} == {5, 6, 7}
    assert {one.drives for one in members("--drives", "6")} == {6}


def test_which_settings() -> None:
    units = members("--chunk-sizes", "64KiB,256KiB", "--drives", "4", "--levels", "raid6")
    units.sort(key=lambda one: one.family.settings, reverse=True)
    assert [one.family.settings for one in units] == [(("chunk size", "64KiB"),), (("chunk size", "256KiB"),)]
    sizes = [array_of(one).description["groups"][0]["chunk_bytes"] for one in units]
    assert sizes == [64 << 10, 256 << 10]
    earlier = members("--stripe-units", "64KiB,256KiB", "--drives", "4", "--levels", "raid6")
    assert sorted(one.family.settings for one in earlier) == sorted(one.family.settings for one in units)
    cached = members("--hosts", "server-12-raid6-cache", "--caches", "2GiB,8GiB", "--drives", "4", "--levels", "raid6")
    memory = [array_of(one).description["controller"]["cache"]["memory_bytes"] for one in cached]
    assert memory == [2 << 30, 8 << 30]


def test_which_volumes() -> None:
    clouds = ("--volumes", "gp3,io2", "--years", "1", "--capacity", "1TB", "--on", "2026-01")
    mixed = {one.family.offer.type if one.family.offer else "array" for one in members(*clouds)}
    assert mixed == {"gp3", "io2", "array"}
    assert {one.family.offer.type for one in members(*clouds, "--no-arrays") if one.family.offer} == {"gp3", "io2"}
    assert all(one.family.offer for one in members(*clouds, "--no-arrays"))


def test_what_is_run() -> None:
    runs = typed("--requests", "3000", "--store", "here", "--executor", "dask://a:1")
    assert (runs.job.requests_max, runs.store, runs.executor) == (3000, "here", "dask://a:1")
    assert typed("--loss", "1e-6").job.loss_a_year == 1e-6
    assert typed("--objective", "watts,latency").job.objectives == ("watts", "latency")
    near, far = typed(), typed("--spread")
    one = of(members(), 4, "raid6")
    assert near.runs(near.job).footprint_bytes(one) == 10**13 // 4096 * 4096
    assert far.runs(far.job).footprint_bytes(one) == one.usable_bytes // 4096 * 4096


# Layouts and candidates.


@pytest.mark.parametrize(
    ("host", "level"),
    [
        *((HOST, level) for level in ("raid0", "raid1", "raid10", "raid5", "raid6", "4+2", "2+1")),
        *(("zfs-raidz2-12", level) for level in ("raidz1", "raidz2", "raidz3", "draid1:4d:0s", "draid2:8d:1s")),
    ],
)
def test_capacities_are_those_of_the_simulator(host: str, level: str) -> None:
    found = members("--hosts", host, "--levels", level, "--capacity", "1TB")
    counts = {one.drives for one in found}
    assert len(counts) == len(found) > 2 or level == "raid1"
    for one in found:
        array = array_of(one)
        assert isinstance(array, hs.Array)
        assert array.capacity_bytes == pytest.approx(one.usable_bytes, rel=0.01), one.name


def test_every_level_of_the_module_can_be_chosen() -> None:
    """Each level that can be named has candidates on a host of its kind, which the simulator accepts and which survive
    what the level says."""
    chosen = [level for level in _native.levels() if level.choice is not None]
    assert {level.form for level in chosen} == set(_native.LEVELS) - {"jbod"}
    for level in chosen:
        host = "zfs-raidz2-12" if level.has_records else HOST
        found = members(
            "--hosts", host, "--levels", level.name, "--capacity", "1TB", "--drives", "1..40", "--bays", "40"
        )
        assert found, level
        for one in found:
            laid_out = _native.Level(one.level)
            assert laid_out.name_in_files == level.name
            assert one.survives == laid_out.redundancy(one.drives, one.spans).survives
            assert one.drives % one.spans == 0
            assert one.drives // one.spans >= level.members_min
            assert one.drives % level.members_step == 0
            assert one.drives <= level.members_max
        for one in (found[0], found[-1]):
            array = array_of(one)
            assert isinstance(array, hs.Array)
            assert array.description["groups"][0]["level"] == level.name
            assert array.capacity_bytes == pytest.approx(one.usable_bytes, rel=0.01), one.name


@pytest.mark.parametrize(("survive", "without"), [(0, set()), (1, {"raid0"})])
def test_every_default_level_is_looked_at_unasked(survive: int, without: set[str]) -> None:
    default = {level.name for level in _native.levels() if level.choice == "default"}
    assert default == {"raid0", "raid10", "raid5", "raid6", "raidz1", "raidz2", "raidz3"}
    found = members("--hosts", f"{HOST},zfs-raidz2-12", "--capacity", "1TB", "--survive", str(survive))
    assert {one.family.level for one in found} == default - without


def test_no_candidate_is_impossible(store: Path) -> None:
    """Of a space with every level, host and setting the fewest and the most drives run."""
    levels = "raid0,raid1,raid10,raid5,raid6,4+2,raidz1,raidz2,raidz3,draid2:4d:1s"
    arguments = ("--hosts", f"{HOST},server-12-raid6-cache,zfs-raidz2-12,md-raid10-8-nvme", "--levels", levels)
    among = ("--among", f"{DRIVE},{FLASH},cheetah-15k7-600,6500-ion-30tb", "--capacity", "100GB", "--estimate-prices")
    choosing = parsed(*("file-server", "--rate", "20", "--limit", "p99=9s", "--on", "2019-07"), *arguments, *among)
    runs = choosing.runs(choosing.job)
    runs.store = store
    families = space_of(choosing).families
    assert {family.level for family, _ in families} == set(levels.split(","))
    asks = [Trial(one, 1000) for _, own in families for one in {own[0].name: own[0], own[-1].name: own[-1]}.values()]
    assert len(asks) > 60
    said = {ask.candidate.name: row.impossible for ask, row in zip(asks, runs.rows(asks), strict=True)}
    assert {name: why for name, why in said.items() if why is not None} == {}


@pytest.mark.parametrize(("host", "level"), [(HOST, "raid6"), (HOST, "raid10"), ("zfs-raidz2-12", "raidz2")])
def test_a_bound_leaves_out_nothing_that_keeps_up(host: str, level: str, store: Path) -> None:
    """What a bound says of each number of drives, held against a run at that rate: what it calls too few piles up."""
    for workload, rate in (("random-read-4k", 900), ("file-server", 400)):
        choosing = parse_question([workload], **(JOB | {"rates": [rate], "hosts": [host], "levels": [level]}))
        some = candidates(choosing.space, choosing.job, choosing.book)
        bounds = Bounds(choosing.job, store)
        bounds.test([family.model for family, _ in some.families if family.model is not None])
        ((_, own),) = some.families
        first = bounds.first(own)
        runs = choosing.runs(choosing.job)
        runs.store = store
        rows = runs.rows([Trial(one, 4000) for one in own[:first]])
        assert all(row.saturated for row in rows)
    # A hundred times the load is beyond any number of them.
    hopeless = parse_question(["random-read-4k"], **(JOB | {"rates": [90_000], "hosts": [host], "levels": [level]}))
    bounds = Bounds(hopeless.job, store)
    bounds.test([family.model for family, _ in some.families if family.model is not None])
    assert bounds.first(own) == len(own) > 0


def test_what_could_not_keep_up_is_asked_for_no_more_than_it_did(store: Path) -> None:
    """Of four drives that were saturated, neither they nor fewer are looked at under a load that is far beyond that;
    more of them are, and all are under a load that may be carried."""
    over = parse_question(["random-read-4k"], **(JOB | {"rates": [5000], "levels": ["raid10"]}))
    ((_, own),) = candidates(over.space, over.job, over.book).families
    four = of(own, 4, "raid10")
    runs = over.runs(over.job)
    runs.store = store
    (row,) = runs.rows([Trial(four, 4000)])
    assert row.saturated
    iops = row.figures["iops"]
    assert iops is not None
    assert runs.overload_rates.max_rate(four) == iops < 4000
    larger = [one for one in own if one.drives > 4]
    assert larger
    assert runs.overload_rates.max_rate(larger[0]) == float("inf")
    for rate, first in ((1.2 * iops, larger[0]), (1.1 * iops, own[0])):
        demand = replace(over.job.demand, rate_per_s=rate, classes=())
        bounds = Bounds(replace(over.job, demand=demand), overload_rates=runs.overload_rates)
        assert own[bounds.first(own)] == first


# The answer.


def test_the_winner_is_the_system_that_was_simulated(answer: Answer, store: Path, tmp_path: Path) -> None:
    best = answer.best
    assert best is not None
    path = tmp_path / "best.toml"
    path.write_text(best.toml)
    array = hs.Array.load(path)
    assert array.description["name"] == best.name
    (one,) = [one for one in members("--survive", "1") if one.name == best.name]
    simulated = array_of(one)
    assert isinstance(simulated, hs.Array)
    assert array.description | {"name": ""} == simulated.description | {"name": ""}
    assert len(array.description["members"]) == best.drives
    assert sum(part.quantity * part.usd for part in best.parts) == pytest.approx(best.usd)
    # The figure of the answer's run, of the same requests.
    choosing = parse_question(["file-server"], **JOB, survive=1, store=store)
    requests = best.verdicts[0].requests
    taken = f"{choosing.runs(choosing.job).footprint_bytes(one)}B"
    (run,) = hs.run(path, "file-server", rate=100, requests=requests, warm_up=max(500, requests // 8), range=taken)
    assert run["p99_ms"] == pytest.approx(best.verdicts[0].value)


@pytest.mark.parametrize(
    "changed",
    [
        *({"limits": [f"p99={most}ms"]} for most in (60, 40, 25)),
        *({"rates": [rate]} for rate in (150, 220)),
        *({"capacity": capacity} for capacity in ("30TB", "60TB")),
        {"survive": 2},
        {"spares": 1},
        {"loss_a_year": 1e-9},
        {"limits": ["p99=80ms", "read.p95=20ms"]},
    ],
    ids=str,
)
def test_nothing_harder_is_cheaper(answer: Answer, store: Path, changed: dict[str, Any]) -> None:
    assert answer.best is not None
    found, _ = choose_changed(changed, store)
    assert found is None or found.candidate.usd >= answer.best.usd


def choose_changed(changed: dict[str, Any], store: Path, **more: Any) -> tuple[Any, Chooser]:
    """What a search comes to, without what would change it."""
    choosing = parse_question(["file-server"], **(JOB | {"survive": 1, "store": store} | changed | more))
    found, _ = choosing.search(choosing.job, choosing.book)
    return found.best, choosing


def test_drives_of_a_host_that_cost_nothing_are_named(tmp_path: Path) -> None:
    """A host's flash is bought, too, though it is no drive that is chosen."""
    prices = tmp_path / "prices.csv"
    prices.write_text(f"item,price,currency,date,confidence,source\n{DRIVE},300,USD,2019-06,A,a shop\n")
    own = {"prices": str(prices), "shipped_prices": False, "hosts": ["nearline-12-raid6-nvme-cache"]}
    choosing = parse_question(["file-server"], **(JOB | own))
    some = space_of(choosing)
    ((family, members_),) = some.families[:1]
    assert family.host is not None
    ((flash, _),) = family.host.others
    told = choosing._warnings(some, members_[:1])
    assert [one for one in told if "count $0" in one and flash in one] != [], told


def test_openzfs_says_what_is_not_modelled() -> None:
    """RAIDZ is modelled in place and without a cache, which an answer with such an array says once."""

    choosing = parse_question(["file-server"], **(JOB | {"hosts": ["zfs-raidz2-8-nas", HOST], "drives": (8, 8)}))
    some = space_of(choosing)
    by_level = {one.level: one for _, own in some.families for one in own}

    def warned(*levels: str) -> int:
        warnings = choosing._warnings(some, [by_level[level] for level in levels])
        return sum("only the layout of RAIDZ and dRAID" in one for one in warnings)

    assert (warned("raidz2"), warned("raidz2", "raidz1", "raid6"), warned("raid6", "raid10")) == (1, 1, 0)


def test_ssds_are_judged_in_their_steady_state(tmp_path: Path) -> None:
    def warnings_of(name: str, text: str) -> list[str]:
        (tmp_path / f"{name}.toml").write_text(text)
        prices = tmp_path / "own.csv"
        prices.write_text(f"item,price,currency,date,confidence,source\n{name},55,USD,2019-06-30,A,a quote\n")
        own = {"among": [str(tmp_path / f"{name}.toml")], "prices": [str(prices)], "hosts": None, "capacity": "100GB"}
        choosing = parse_question(["file-server"], **(JOB | own))
        some = space_of(choosing)
        return [one for one in choosing._warnings(some, some.families[0][1][:1]) if one.startswith(SSD_STATE)]

    blueprint = _native.system_blueprint(FLASH, [])["text"]
    assert warnings_of("new", blueprint) == [f"{SSD_STATE}: new"]
    choosing = parse_question(["file-server"], **JOB)
    some = candidates(choosing.space, choosing.job, choosing.book)
    for family, sizes in some.families:
        options = dict(choosing.runs(choosing.job)._options(Trial(sizes[0], 1000), choosing.job.demand))
        is_flash = family.model is not None and family.model.drive.kind == "ssd"
        assert options.get("state") == ("steady" if is_flash else None), family.name


def test_percentiles_well_within_a_limit_meet_it_without_an_interval() -> None:
    """Few requests are slower than a high percentile: it has no interval, however far within the limit it is."""
    limit = limit_of("p999=20ms")

    def verdict_of(value: float, code: TooShort = "few_beyond", requests: int = 32_000) -> str:
        return judge(limit, Estimate(value, None, None, requests, "the words decide nothing", code))

    assert [verdict_of(value) for value in (1.0, 10.0, 10.1, 40.0, 40.1)] == ["meets"] * 2 + ["undecided"] * 2 + [
        "does not"
    ]
    assert verdict_of(1.0, requests=limit.requests_min - 1) == "undecided"
    others: tuple[TooShort, ...] = ("drifts", "few_events")
    for code in others:
        assert verdict_of(1.0, code) == "undecided"


def test_a_miss_while_the_write_cache_fills_is_decided_sooner() -> None:
    """The reason is recognized by its code, not by its words."""
    row = hs.run("nearline-24-raid6", "oltp-8k", depth=16, requests=1000)[0]
    assert row["sampling_code"] == "write_cache_moves"
    limit = limit_of("p99=20ms")
    estimate = estimate_from_row(limit, replace(RunRow.of(row), sampling="reworded"))
    assert (estimate.why, estimate.code) == ("reworded", "write_cache_moves")
    assert judge(limit, replace(estimate, value=30.0)) == "does not"
    assert judge(limit, replace(estimate, value=30.0, code="few_requests")) == "undecided"


def test_an_ssd_that_is_not_steady_is_judged_by_the_code() -> None:
    limit = limit_of("p99=20ms")
    estimate = Estimate(30.0, None, None, 1000, "reworded", "free_flash_falls")
    assert judge(limit, estimate) == "does not"
    assert judge(limit, replace(estimate, value=10.0)) == "meets"


def test_a_calibrated_model_is_advised_only_if_the_model_has_an_interval() -> None:
    (candidate, *_) = members("--levels", "raid6")
    tested = search.Tested(candidate, (), "meets", 1000, models=(None,), model_error="no interval: reworded")
    assert "headstack measure twin" not in _tell_apart([tested])
    assert "headstack measure twin" in _tell_apart([replace(tested, models=((1.0, 2.0, 0.9),))])


def test_a_limit_on_the_loss_of_data_is_kept(store: Path) -> None:
    levels = []
    for loss in (None, 1e-2, 3e-6, 1e-9):
        best, choosing = choose_changed({"survive": 0, "loss_a_year": loss}, store)
        assert loss is None or choosing.loss_a_year(best.candidate) <= loss
        levels.append((best.candidate.level, best.candidate.drives))
    assert levels == [("raid0", 2), ("raid5", 3), ("raid10", 4), ("raid6", 4)]
    often, _ = choose_changed({"survive": 0, "loss_a_year": 1e-5, "afr": {"disk": 9.0}}, store)
    assert often.candidate.level == "raid6"
    nothing = hs.choose("file-server", **JOB, loss_a_year=1e-15, store=store)
    assert nothing.best is None
    assert nothing.nearest is not None
    assert ("loses data too often", nothing.candidates) in [(one.why, one.candidates) for one in nothing.left_out]
    assert [one.constraint for one in nothing.relaxed] == ["loss=1e-15"]
