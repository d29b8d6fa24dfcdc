"""Many tasks at once: in this process, in processes of this machine, or on a cluster of Dask."""

import contextlib
import itertools
import logging
import os
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Protocol, runtime_checkable

from mrgp._extras import needed

AHEAD = 2
"""Tasks that wait at each worker: it never stands still, and results do not pile up."""

ANSWER_WITHIN = "10s"
_clients: dict[str, Any] = {}


@runtime_checkable
class Team(Protocol):
    """Whoever works through tasks, `here` in this process or elsewhere."""

    here: ClassVar[bool]

    def spread(
        self, work: Callable[..., Any], shared: Any, tasks: Iterable[Any]
    ) -> Iterator[tuple[int, Any]]:
        """Yield the number and the result of each task, work(shared, task), as they end.

        Tasks are asked for as workers become free.
        """
        ...


class Alone:
    """One process, this one, works through tasks one by one.

    >>> list(Alone().spread(lambda shared, task: shared * task, 10, [1, 2]))
    [(0, 10), (1, 20)]
    """

    here: ClassVar[bool] = True

    def spread(
        self, work: Callable[..., Any], shared: Any, tasks: Iterable[Any]
    ) -> Iterator[tuple[int, Any]]:
        """Yield the number and the result of each task, in order."""
        for number, task in enumerate(tasks):
            yield number, work(shared, task)


class Cluster:
    """The workers of a client of `distributed` share the tasks.

    What is `shared` goes once to each worker. A worker that is lost costs the tasks that it had,
    which others do again.
    """

    here: ClassVar[bool] = False

    def __init__(self, client: Any):
        self.client = client

    def spread(
        self, work: Callable[..., Any], shared: Any, tasks: Iterable[Any]
    ) -> Iterator[tuple[int, Any]]:
        """Yield the number and the result of each task, in the order in which they end."""
        from distributed import as_completed

        # A task of its own, not scattered: what is lost with a worker can be had again.
        with warnings.catch_warnings():
            # It has to be sent once, however large it is.
            warnings.filterwarnings("ignore", message="Sending large graph")
            held = self.client.submit(_hold, shared, key=_key("shared"), pure=False)
        left, begun = iter(enumerate(tasks)), {}
        running = as_completed([], loop=self.client.loop)

        def begin() -> None:
            # Workers come and go.
            most = AHEAD * max(1, sum(self.client.nthreads().values()))
            for number, task in itertools.islice(left, max(0, most - len(begun))):
                key = _key(f"task-{number}")
                future = self.client.submit(work, held, task, key=key, pure=False)
                begun[future] = number
                running.add(future)

        try:
            begin()
            for future in running:
                number, found = begun.pop(future), _result(future)
                future.release()
                begin()
                yield number, found
        finally:
            self.client.cancel([*begun, held])


@contextlib.contextmanager
def team(scheduler: Any = None, workers: int | None = None, where: str = "") -> Iterator[Team]:
    """Give those who work: a cluster's workers, so many processes here, or this process alone.

    `scheduler` is the address of a cluster, or a client of one. Processes that are started here
    have one thread each, on a core of their own, and end with the context.

    >>> with team() as everyone:
    ...     [found for _, found in everyone.spread(lambda _, x: x + 1, None, [1])]
    [2]
    """
    check_workers(scheduler, workers, where)
    if scheduler is not None:
        known = not isinstance(scheduler, str) or scheduler in _clients
        client = client_of(scheduler, where)
        try:
            yield Cluster(client)
        finally:
            if not known:
                forget(scheduler)
    elif workers is not None:
        with _local(workers, where) as client:
            yield Cluster(client)
    else:
        yield Alone()


def check_workers(scheduler: Any, workers: Any, where: str = "") -> None:
    """Refuse both a cluster and processes of one's own, and numbers that are none.

    >>> check_workers("tcp://10.0.0.1:8786", 2, "compare: ")
    Traceback (most recent call last):
    ValueError: compare: give a scheduler, or a number of workers to start here; got both.
    """
    if scheduler is not None and workers is not None:
        raise ValueError(
            f"{where}give a scheduler, or a number of workers to start here; got both."
        )
    whole = isinstance(workers, int) and not isinstance(workers, bool)
    if workers is not None and not (whole and workers >= 1):
        raise ValueError(f"{where}workers is a whole number from 1 on; got {workers!r}.")


def client_of(scheduler: Any, where: str = "", default: bool = False) -> Any:
    """Return the client meant: itself, or one of the cluster at an address, made once.

    A `default` client is the one by which Dask computes what is asked for later.
    """
    distributed = dask_of("distributed", where)
    if isinstance(scheduler, distributed.Client):
        return scheduler
    if not isinstance(scheduler, str):
        raise TypeError(
            f"{where}scheduler is the address of a Dask scheduler, such as 'tcp://10.0.0.1:8786',"
            f" or a distributed.Client; got {type(scheduler).__name__}."
        )
    client = _clients.get(scheduler)
    if client is None or client.status != "running":
        try:
            client = distributed.Client(scheduler, timeout=ANSWER_WITHIN, set_as_default=default)
        except (OSError, ValueError, TypeError) as error:
            raise ValueError(
                f"{where}no Dask scheduler answers at {scheduler!r} ({type(error).__name__})."
                " Start one with `dask scheduler`, whose first lines say its address."
            ) from None
        _clients[scheduler] = client
    return client


def forget(address: str) -> None:
    """Leave a cluster whose client was made for an address."""
    client = _clients.pop(address, None)
    if client is not None:
        client.close()


def dask_of(package: str, where: str = "") -> Any:
    """Import a package of Dask, or name the extra that it comes with."""
    return needed(
        package, f'{where}work on chunks and clusters needs {package}: pip install "mrgp[scale]".'
    )


def dask_setup(worker: Any) -> None:
    """Keep a worker of this machine to one core: Dask calls this when a worker starts.

    Linear algebra and compiled programs take as many threads as there are cores to run on.
    """
    if not isinstance(worker.name, int) or not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    core = {cores[worker.name % len(cores)]}
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(int(thread), core)


@contextlib.contextmanager
def _local(workers: int, where: str) -> Iterator[Any]:
    """Give a client of processes on this machine, one thread each."""
    dask, distributed = dask_of("dask", where), dask_of("distributed", where)
    settings = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    quiet = {"silence_logs": logging.CRITICAL, "preload": [__name__]}
    # A killed worker is started again, however long a busy machine takes for it.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"})
    with (
        patient,
        distributed.LocalCluster(n_workers=workers, **settings, **quiet) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _hold(shared: Any) -> Any:
    return shared


def _key(what: str) -> str:
    return f"mrgp-{what}-{uuid.uuid4().hex}"


def _result(future: Any) -> Any:
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker:
        raise OSError(
            "Workers were ended from outside again and again while at one task, perhaps for want of"
            " memory: give fewer workers, or smaller chunks."
        ) from None
