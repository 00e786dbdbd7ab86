"""Reading in a process of its own: a store that maps its file dies of what a crash left in it."""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import traceback
from collections.abc import Callable

from stores.model import Rows
from stores.verdicts import BrokenError, Kind

PATIENCE_S = 30


def apart(reading: Callable[[], Rows]) -> Rows:
    """What a store reads in a process of its own, which may die of it."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(here)
            # Whoever runs this would print the stacks of a death that is expected.
            faulthandler.disable()
            signal.alarm(PATIENCE_S)
            with os.fdopen(there, "wb") as pipe:
                pickle.dump(_answer(reading), pipe)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise BrokenError(Kind.DIED, signal.Signals(os.WTERMSIG(status)).name)
    if not data:
        raise RuntimeError("the checker itself is broken; it says why above")
    answer = pickle.loads(data)
    if isinstance(answer, tuple):
        raise BrokenError(*answer)
    rows: Rows = answer
    return rows


def _answer(reading: Callable[[], Rows]) -> Rows | tuple[Kind, str, int]:
    try:
        return reading()
    except BrokenError as broken:
        return broken.kind, broken.what, broken.transaction
    except OSError as error:
        # What a file system answers that is broken itself.
        return Kind.CORRUPT, str(error), 1
