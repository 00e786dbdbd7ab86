"""What a crash may leave of what was written, and whether an application recovers from it.

::

    recording = hs.crash.open("run.journal")
    found = recording.explore("./check.sh {device}", budget="60s")
    print(found)

A *recording* is a journal that ``headstack serve --journal`` kept, or a log of dm-log-writes. A *check* looks at the
image of the device after a crash: a command, the name of one that comes along (``"ext4"``, ``"sqlite:/app.db"``), or a
function ``check(path, marks)`` that raises or returns a message where something is wrong.
"""

from headstack.crash.checks import acknowledged
from headstack.crash.exploration import Coverage, Exploration, Finding, Write
from headstack.crash.recording import Recording, open

__all__ = ["Coverage", "Exploration", "Finding", "Recording", "Write", "acknowledged", "open"]
