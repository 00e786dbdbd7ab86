"""Local disks of cloud instances: simulated rates compared with measured ones, names, lists and notes."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import headstack as hs
from conftest import SHARED, Headstack
from headstack import _native

MEASURED = SHARED / "validation/measured/scylla_instance_disks.csv"
RATES = Path(__file__).resolve().parents[2] / "catalogue/instances/rates.toml"

SETS = {
    "i3.large": (111_000, 653_925_080, 36_800, 215_066_473),
    "i3.2xlarge": (411_200, 2_015_342_735, 181_500, 808_775_652),
    "i2.xlarge": (64_000, 507_338_935, 57_100, 483_141_731),
    "m5d.large": (33_271, 158_538_149, 16_820, 70_219_810),
    "r5d.2xlarge": (130_095, 621_758_272, 63_644, 267_667_525),
    "c5d.9xlarge": (381_800, 1_865_831_893, 112_264, 795_731_264),
    "m6gd.medium": (14_808, 77_869_147, 5_972, 32_820_302),
    "r6gd.8xlarge": (442_945, 2_522_688_939, 166_021, 1_063_041_152),
    "i4g.large": (34_035, 288_471_904, 27_943, 126_763_269),
    "i4g.4xlarge": (272_704, 2_297_019_392, 165_492, 1_017_657_620),
    "im4gn.4xlarge": (273_050, 1_638_427_264, 92_173, 1_027_966_826),
    "is4gen.medium": (33_965, 288_462_506, 27_876, 126_954_200),
    "i7ie.large": (54_183, 500_035_616, 43_342, 250_007_504),
    "i7ie.24xlarge": (1_770_378, 24_913_655_808, 1_234_112, 12_060_468_224),
    "i7i.xlarge": (150_061, 1_057_917_888, 82_507, 825_843_520),
    "i7i.24xlarge": (2_647_697, 26_121_177_088, 2_002_573, 19_944_206_336),
    "Standard_L2s_v4": (137_498, 749_575_680, 54_999, 374_778_560),
    "Standard_L96s_v4": (5_659_657, 35_697_717_248, 2_637_499, 17_943_207_936),
    "Standard_L8s_v3": (894_399, 3_740_749_056, 607_182, 2_494_925_312),
    "Standard_L64as_v3": (7_000_165, 29_779_765_248, 4_714_977, 19_616_075_776),
    "VM.DenseIO.E5.Flex-8": (1_112_606, 6_965_937_664, 608_448, 4_079_220_992),
    "VM.DenseIO.E5.Flex-48": (6_507_473, 43_794_403_328, 3_495_315, 21_627_578_368),
}
"""Measured read IOPS, read bytes per second, write IOPS and write bytes per second of instances, for all disks."""


@pytest.mark.parametrize("read", [100, 0], ids=["read", "write"])
def test_rates_at_depth_are_the_measured_ones(read: int) -> None:
    small = hs.run(list(SETS), size="4KiB", read=read, random=100, depth=2048, requests=100_000, warm_up=20_000)
    large = hs.run(list(SETS), size="1MiB", read=read, random=0, depth=64, requests=4_000, warm_up=400)
    for name, of_small, of_large in zip(SETS, small, large, strict=True):
        iops, bytes_per_s = SETS[name][:2] if read else SETS[name][2:]
        # At 4 KiB, the bytes limit a few instances before the IOPS, which iotune may measure at 512 bytes.
        assert of_small["iops"] == pytest.approx(min(iops, bytes_per_s / 4096), rel=0.02), name
        assert of_large["iops"] * 2**20 == pytest.approx(bytes_per_s, rel=0.02), name


def test_a_share_of_a_disk_is_flat_at_its_rate() -> None:
    light, near, over = hs.run("i4g.large", size="4KiB", read=100, random=100, rate=[5_000, 33_000, 40_000], time="20s")
    for quantile in ("p50_ms", "p95_ms"):
        assert near[quantile] == pytest.approx(light[quantile], rel=0.05), quantile
    assert over["iops"] == pytest.approx(34_035, rel=0.005)
    # A higher depth adds latency, not throughput.
    deep, deeper = hs.run("i4g.large", size="4KiB", read=100, random=100, depth=[64, 512], requests=50_000)
    assert deep["iops"] == pytest.approx(deeper["iops"], rel=0.005)
    assert deeper["mean_ms"] == pytest.approx(512 / 34_035 * 1000, rel=0.03)


@pytest.mark.parametrize(
    ("instance", "rates", "medians_ms"),
    [
        ("i3.2xlarge", [61_892, 226_938, 309_460, 391_983], [0.1027, 0.1394, 0.17, 0.2204]),
        ("im4gn.4xlarge", [25_297, 126_482, 202_371, 252_963], [0.1125, 0.1311, 0.1551, 0.178]),
    ],
)
def test_reads_of_a_whole_disk_slow_down_as_measured(instance: str, rates: list[int], medians_ms: list[float]) -> None:
    results = hs.run(instance, size="4KiB", read=100, random=100, rate=rates, time="1s")
    assert [row["p50_ms"] for row in results] == pytest.approx(medians_ms, rel=0.04)


def rows() -> Iterator[tuple[str, str, int, tuple[int, ...]]]:
    """Yields basis, instance, disks and rates of each row with four rates."""
    for family in tomllib.loads(RATES.read_text(encoding="utf-8"))["families"]:
        for basis in ("of-disk", "of-set"):
            for instance, disks, _, *rates in family.get(basis, ()):
                yield basis, instance, disks, tuple(rates)


@pytest.mark.skipif(not MEASURED.exists(), reason="needs ../shared/validation, which is not part of the repository")
def test_every_measured_type_is_in_the_table_as_measured() -> None:
    table = {instance: rates for _, instance, _, rates in rows()}
    with MEASURED.open(encoding="utf-8") as file:
        measured = list(csv.DictReader(file))
    assert len(measured) == 110
    seen = set()
    for row in measured:
        figures = tuple(int(row[key]) for key in ("read_iops", "read_bytes_per_s", "write_iops", "write_bytes_per_s"))
        family, _, size = row["instance_type"].rpartition(".")
        # Two rows stand for all other sizes of a family.
        others = {name for name in table if name.startswith(f"{family}.")} - {"i3.large", "i3.xlarge"}
        for name in others if size == "ALL" else {row["instance_type"]}:
            assert table[name] == figures, name
            seen.add(name)
    assert seen == table.keys()


def test_the_rates_of_one_disk_count_for_each() -> None:
    for basis, instance, disks, rates in rows():
        summary = hs.drives.show(instance).summary
        factor = disks if basis == "of-disk" else 1
        assert (summary["random_read_iops"], summary["random_write_iops"]) == (rates[0] * factor, rates[2] * factor)


def test_a_wrong_name_is_answered_with_the_closest(headstack: Headstack) -> None:
    done = headstack("run", "i4g.larg")
    assert done.returncode == 2
    assert "closest: i4g.large" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_instances_are_listed_by_family(headstack: Headstack) -> None:
    instances = set(_native.instance_ids())
    assert not instances & set(hs.drives.list())
    assert not instances & set(hs.drives.list(kind="volume"))
    by_family = headstack("catalog", "drives", "list", "--kind", "instance").stdout
    assert len(by_family.splitlines()) < 30
    assert by_family.splitlines()[-1].endswith("add --family NAME.")
    of_one = headstack("catalog", "drives", "list", "--family", "i4g").stdout
    assert [line.split()[0] for line in of_one.splitlines()[2:]] == list(hs.drives.list(family="i4g"))
    assert len(hs.drives.list(family="i4g,i7i")) == 6 + 11
    assert set(hs.drives.list(kind="instance", vendor="oracle")) == {name for name in instances if "DenseIO" in name}
    refused = headstack("catalog", "drives", "list", "--family", "i4")
    assert refused.returncode == 2
    assert "i4g" in refused.stderr


def test_a_latency_that_was_not_measured_is_noted(headstack: Headstack) -> None:
    def note(system: str) -> str:
        done = headstack("run", system, "--size", "4KiB", "--read", "50", "--requests", "2000", "--verbose")
        assert done.returncode == 0, done.stderr
        return " ".join(done.stdout.split())

    assert "the latency of reads and writes is not known, but assumed" in note("i7i.large")
    assert "the latency of writes is not known, but assumed" in note("im4gn.4xlarge")
    assert "but assumed" not in note("aws-gp3-500")
    shown = headstack("catalog", "drives", "show", "i7i.large").stdout
    assert "D not known" in shown
    assert "ScyllaDB's iotune" in shown


def test_choose_reports_that_instances_have_no_price(headstack: Headstack) -> None:
    done = headstack(
        *("choose", "-w", "oltp-8k", "--rate", "500", "--limit", "p99=20ms", "--capacity", "400GB"),
        *("--among", "i4g.large"),
    )
    assert done.returncode == 2
    assert "'i4g.large' has no price: local disks are sold only with their cloud instance" in done.stderr


@pytest.mark.parametrize("members", [1, 4])
def test_an_instance_disk_is_a_drive_of_an_array(tmp_path: Path, members: int) -> None:
    file = tmp_path / "set.toml"
    file.write_text(
        f'name = "Set"\n[[drives]]\ndrive = "i4g.4xlarge"\ncount = {members}\n[[groups]]\nlevel = "raid0"\n'
    )
    (row,) = hs.run(str(file), size="4KiB", read=100, random=100, depth=1024, requests=60_000, warm_up=10_000)
    assert row["iops"] == pytest.approx(272_704 * members, rel=0.05)
