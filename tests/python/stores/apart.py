"""Reads a store in a separate process: a store that maps its file may be killed by its state after a crash."""

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
    """Returns the contents that a store reads in a separate process, which may be killed."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(here)
            # Avoids stack traces of an expected death.
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
        # Errors of a broken file system.
        return Kind.CORRUPT, str(error), 1
