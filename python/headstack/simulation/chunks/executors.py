"""Where chunks are carried out: in this process, or on the workers of a cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Protocol

from headstack._native import RunError
from headstack.simulation.chunks.chunk import Chunk
from headstack.simulation.chunks.work import answer

TASK_S = 2.0
"""A task is so many chunks as take about this long: what it costs to hand it over is lost in that, and not much is lost
with it."""

Answer = Future[tuple[list[bytes], float]]

Tell = Callable[[float], object]


class Pool(Protocol):
    """What carries out tasks."""

    width: int
    """Tasks that are handed over at a time."""

    def submit(self, contents: list[bytes], tell: Tell) -> Answer:
        """Begins a task; ``tell`` is called with the share done, where that is known."""

    def has_died(self, error: BaseException) -> bool:
        """Whether the task took its worker with it, time and again."""

    def look(self) -> None:
        """Raises ``RunError`` where nobody is left who could carry out anything."""


class _Local:
    """The cores of this machine. A thread a task hands it to the compiled part, whose cores do the runs of all tasks:
    one task more than cores, so that none waits while the end of another is awaited."""

    def __init__(self, threads: ThreadPoolExecutor, width: int) -> None:
        self.width = width
        self._threads = threads

    def submit(self, contents: list[bytes], tell: Tell) -> Answer:
        return self._threads.submit(answer, contents, tell)

    def has_died(self, error: BaseException) -> bool:
        return False

    def look(self) -> None:
        pass


class _StoppedError(Exception):
    pass


class Task:
    """Chunks under way."""

    def __init__(self, chunks: list[Chunk], seeks: bool = False) -> None:
        self.chunks = chunks
        self.seeks = seeks
        """Whether it only seeks the run that kills workers; the answer is of no use."""
        self.alone = seeks
        """Whether nothing else is under way beside it: a worker that dies then died of it."""
        self.share = 0.0

    @property
    def runs(self) -> int:
        return 0 if self.seeks else sum(chunk.runs for chunk in self.chunks)

    def halves(self) -> list[Task]:
        """The same in two tasks; none where it is of one run."""
        middle = len(self.chunks) // 2
        if middle:
            return [Task(self.chunks[:middle], self.seeks), Task(self.chunks[middle:], self.seeks)]
        (chunk,) = self.chunks
        return [Task([half], seeks=True) for half in chunk.halves()] if chunk.runs > 1 else []


def answers(pool: Pool, chunks: Iterator[Chunk], tell: Tell) -> Generator[tuple[Chunk, bytes], None, None]:
    """Carries out chunks, and gives the answer of each as it comes; ``tell`` is called with the runs under way that are
    done already.

    Raises ``RunError`` at the end, naming the runs whose workers died.
    """
    under_way: dict[Answer, Task] = {}
    again: deque[Task] = deque()
    suspects: deque[Task] = deque()
    size, stopped, culprits = 1, False, []

    def begin(task: Task) -> None:
        def hear(share: float) -> None:
            if stopped:
                raise _StoppedError
            task.share = share

        under_way[pool.submit([chunk.content for chunk in task.chunks], hear)] = task

    try:
        while True:
            while len(under_way) < pool.width and not any(task.alone for task in under_way.values()):
                task = again.popleft() if again else Task(list(islice(chunks, size)))
                if not task.chunks:
                    break
                begin(task)
            if not under_way and suspects:
                begin(suspects.popleft())
            if not under_way:
                break
            for future in wait(under_way, timeout=0.1, return_when=FIRST_COMPLETED).done:
                task, error = under_way.pop(future), future.exception()
                if error is None and not task.seeks:
                    found, took_s = future.result()
                    size = max(1, min(4 * size, round(len(found) * TASK_S / max(took_s, 1e-3))))
                    yield from zip(task.chunks, found, strict=True)
                elif error is not None and pool.has_died(error):
                    if len(task.chunks) > 1:
                        again.extend(task.halves())
                    elif not task.alone:
                        # What was on the same worker dies with the culprit.
                        task.alone = True
                        suspects.append(task)
                    elif halves := task.halves():
                        suspects.extend(halves)
                    else:
                        culprits.append(task.chunks[0].describe())
                elif error is not None:
                    raise error
            tell(sum(task.share * task.runs for task in under_way.values()))
            pool.look()
    finally:
        stopped = True
        for future in under_way:
            future.cancel()
    if culprits:
        raise RunError(f"{'; '.join(culprits)}: killed every worker that tried; all other chunks are kept")
