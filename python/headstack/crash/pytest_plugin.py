"""The pytest plugin: the fixture ``disk``, its marker, and outcomes that are neither passed nor failed.

It costs other tests no time: a device is only loaded by the test that requests one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from headstack.crash.inconclusive import InconclusiveError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from headstack.crash.pytest_device import Device

MARKER = (
    'disk(system, faults=None, crash=None, size=None, require=None): the device of the fixture "disk": a system of the '
    'catalogue or of a file, or "constant:TIME"; a file of faults; crash="explore" keeps a journal, whose crash '
    'states disk.explore() checks; require="valid:TIME" requires exact latencies from TIME on'
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("headstack", "simulated disks")
    group.addoption("--disk-require", metavar="valid:TIME", help="require exact latencies of all disks from TIME on")
    group.addoption("--disk-budget", metavar="TIME", help="budget of each exploration: a time, or a number of states")
    group.addoption("--disk-findings", metavar="DIR", help="folder for reproducers of findings")
    group.addoption("--disk-replay", metavar="FILE", help="check only the state of this reproducer")
    group.addoption("--disk-strict", action="store_true", help="fail inconclusive tests")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A simulated disk, as a file, an NBD address, or, for root, a block device or a mounted folder."""
    from headstack.crash.pytest_device import opened  # start-up time

    with opened(request) as device:
        request.node.stash[DEVICE] = device
        yield device


DEVICE: pytest.StashKey[Device] = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when != "call" or DEVICE not in item.stash:
        return report
    device = item.stash[DEVICE]
    if call.excinfo is not None and call.excinfo.errisinstance(InconclusiveError):
        _inconclusive(item, report, str(call.excinfo.value))
    elif report.passed and (unused := device.unused()) is not None:
        report.outcome, report.longrepr = "failed", unused
    elif report.passed and (doubt := device.doubt()) is not None:
        _inconclusive(item, report, doubt)
    return report


def _inconclusive(item: pytest.Item, report: pytest.TestReport, reason: str) -> None:
    if item.config.getoption("--disk-strict"):
        report.outcome, report.longrepr = "failed", f"inconclusive: {reason}"
        return
    path, line, _ = item.location
    # Consumers of reports (JUnit, xdist) know three outcomes; this one is the nearest.
    report.outcome, report.longrepr = "skipped", (path, (line or 0) + 1, f"inconclusive: {reason}")
    report.__dict__["headstack_inconclusive"] = reason


def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, object] | None:
    if "headstack_inconclusive" not in report.__dict__:
        return None
    return "inconclusive", "I", ("INCONCLUSIVE", {"yellow": True})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.getreports("inconclusive")
    if not reports:
        return
    terminalreporter.section("inconclusive: neither passed nor failed")
    for report in reports:
        terminalreporter.write_line(f"{report.nodeid}: {report.__dict__['headstack_inconclusive']}")
