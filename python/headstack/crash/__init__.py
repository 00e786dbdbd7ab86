"""Explores the states that a crash may leave, and checks whether an application recovers from them.

See docs/design/crash.md. For example::

    recording = hs.crash.open("run.journal")
    exploration = recording.explore("./check.sh {device}", budget="60s")
    print(exploration)

A *recording* is a journal from ``headstack serve --journal``, or a log of dm-log-writes. A *check* inspects the image
of the device after a crash: a command, the name of a built-in check (``"ext4"``, ``"sqlite:/app.db"``), or a function
``check(path, marks)`` that raises or returns a message if it finds a fault.
"""

# Names are loaded on first use: pytest loads this package in every run, for its plugin.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from headstack.crash.checks import acknowledged
    from headstack.crash.findings import Coverage, Exploration, Finding, Write
    from headstack.crash.recording import Recording, open

_MODULE_OF = {
    "acknowledged": "checks",
    **dict.fromkeys(("Coverage", "Exploration", "Finding", "Write"), "findings"),
    **dict.fromkeys(("Recording", "open"), "recording"),
}


def __getattr__(name: str) -> object:
    from importlib import import_module  # start-up time

    if name not in _MODULE_OF:
        raise AttributeError(f"module 'headstack.crash' has no attribute {name!r}")
    return getattr(import_module(f"headstack.crash.{_MODULE_OF[name]}"), name)


__all__ = ["Coverage", "Exploration", "Finding", "Recording", "Write", "acknowledged", "open"]
