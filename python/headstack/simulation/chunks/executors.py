"""``Pool`` and its local implementation: runs chunks in this process or on the workers of a cluster."""

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
"""Target duration of a task, in seconds: long enough to hide the cost of submitting it, and short enough that losing it
costs little."""

Answer = Future[tuple[list[bytes], float]]

ProgressCallback = Callable[[float], object]


class Pool(Protocol):
    """An executor of tasks."""

    width: int
    """Number of tasks submitted at a time."""

    def submit(self, contents: list[bytes], on_progress: ProgressCallback) -> Answer:
        """Starts a task; ``on_progress`` is called with the share done, if known."""

    def has_died(self, error: BaseException) -> bool:
        """Whether the task repeatedly killed its worker."""

    def look(self) -> None:
        """Raises ``RunError`` if there is no worker left."""


class _Local:
    """The cores of this machine. Each task has a thread that calls the compiled part, which runs all tasks on all
    cores. There is one task more than cores, so that no core idles while another task ends."""

    def __init__(self, threads: ThreadPoolExecutor, width: int) -> None:
        self.width = width
        self._threads = threads

    def submit(self, contents: list[bytes], on_progress: ProgressCallback) -> Answer:
        return self._threads.submit(answer, contents, on_progress)

    def has_died(self, error: BaseException) -> bool:
        return False

    def look(self) -> None:
        pass


class _StoppedError(Exception):
    pass


class Task:
    """Chunks that are being computed."""

    def __init__(self, chunks: list[Chunk], seeks: bool = False) -> None:
        self.chunks = chunks
        self.seeks = seeks
        """Whether it only searches for the run that kills workers; its answer is discarded."""
        self.alone = seeks
        """Whether no other task is in progress: if a worker dies, this task is the cause."""
        self.share = 0.0

    @property
    def runs(self) -> int:
        return 0 if self.seeks else sum(chunk.runs for chunk in self.chunks)

    def halves(self) -> list[Task]:
        """Splits the task into two; returns none if it has one run."""
        middle = len(self.chunks) // 2
        if middle:
            return [Task(self.chunks[:middle], self.seeks), Task(self.chunks[middle:], self.seeks)]
        (chunk,) = self.chunks
        return [Task([half], seeks=True) for half in chunk.halves()] if chunk.runs > 1 else []


def answers(
    pool: Pool, chunks: Iterator[Chunk], on_progress: ProgressCallback
) -> Generator[tuple[Chunk, bytes], None, None]:
    """Computes chunks and yields each answer as it arrives; ``on_progress`` is called with the number of runs done by
    tasks in progress.

    Raises ``RunError`` at the end with the runs whose workers died.
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
                    contents, took_s = future.result()
                    size = max(1, min(4 * size, round(len(contents) * TASK_S / max(took_s, 1e-3))))
                    yield from zip(task.chunks, contents, strict=True)
                elif error is not None and pool.has_died(error):
                    if len(task.chunks) > 1:
                        again.extend(task.halves())
                    elif not task.alone:
                        # Tasks on the same worker die with the culprit, so suspects are run one at a time.
                        task.alone = True
                        suspects.append(task)
                    elif halves := task.halves():
                        suspects.extend(halves)
                    else:
                        culprits.append(task.chunks[0].describe())
                elif error is not None:
                    raise error
            on_progress(sum(task.share * task.runs for task in under_way.values()))
            pool.look()
    finally:
        stopped = True
        for future in under_way:
            future.cancel()
    if culprits:
        raise RunError(f"{'; '.join(culprits)}: killed every worker that tried it; all other chunks are kept")
