"""Work in several processes, each with cores of its own."""

import contextlib
import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def in_processes(
    work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], jobs: int = 1, *, anew: bool = False
) -> Iterator[Any]:
    """Yield what `work` returns for each task, in the order in which they end.

    The cores are shared out among the processes; there are no more processes than cores. `anew`
    gives each task a process of its own that has all cores, one after the other.
    """
    there = _cores()
    if jobs > len(there):
        warnings.warn(f"jobs={jobs}: there are {len(there)} cores, one job each.", stacklevel=2)
    jobs = 1 if anew else max(1, min(jobs, len(there), len(tasks)))
    # Processes that begin anew: a copy of one in which JAX runs can hang.
    fresh = multiprocessing.get_context("spawn")
    each: dict[str, Any] = {"max_tasks_per_child": 1}
    if not anew:
        shares = fresh.Queue()
        for job in range(jobs):
            shares.put(there[job::jobs])
        each = {"initializer": _settle, "initargs": (shares,)}
    with _environment(ONE_THREAD), ProcessPoolExecutor(jobs, fresh, **each) as pool:
        futures = [pool.submit(work, *task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool:
            raise OSError(
                "A process was ended from outside, perhaps for want of memory: give fewer jobs."
            ) from None
        except BaseException:
            # Nothing of what is left is wanted, nor what was begun.
            for process in list(getattr(pool, "_processes", {}).values()):
                process.terminate()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _settle(shares: Any) -> None:
    """Keep a process, and every thread that it starts, to its share of the cores."""
    share = shares.get()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, share)


@contextlib.contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ[name] for name in settings if name in os.environ}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name in settings:
            del os.environ[name]
        os.environ.update(before)
