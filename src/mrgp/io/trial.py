"""Go through files in a process of its own: `python trial.py` answers a line for each line.

A line has the kind of a file, how many columns, values and bytes it may have, and its path. The
answer is what it has too many of ("values 8000000"), what is wrong with it ("error ..."), or "ok".
Nothing of mrgp is imported here, so that it starts at once.
"""

import contextlib
import math
import sys
from collections.abc import Callable
from typing import Any

READ = 1 << 27
"""Bytes that are gone through at most: what comes after them is believed."""

MEMORY = 1 << 30
"""Bytes that going through a file may take beside the libraries."""

ROWS = 1024


class FullError(Exception):
    """A file has more than it may."""


class Room:
    """What a file may have, and what was found so far.

    `own` says that the process is there for files alone, so that its memory may be limited.

    >>> Room(10, 100, 800).take(values=101)
    Traceback (most recent call last):
    mrgp.io.trial.FullError: values 101
    """

    def __init__(self, columns: int, values: int, size: int, own: bool = False):
        self.columns, self.values, self.bytes, self.own = columns, values, size, own
        self.found = {"columns": 0, "values": 0, "bytes": 0}

    def take(self, **more: int) -> None:
        """Count what was found, and stop where it is too much."""
        for what, count in more.items():
            self.found[what] += int(count)
            if self.found[what] > getattr(self, what):
                raise FullError(f"{what} {self.found[what]}")

    def bound(self) -> None:
        """Take no more memory than there is room for beside what was imported."""
        if not self.own:
            return
        with contextlib.suppress(Exception):
            import resource

            with open("/proc/self/statm") as file:
                now = int(file.read().split()[0]) * resource.getpagesize()
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, hard))

    @property
    def is_read(self) -> bool:
        """Whether enough was gone through."""
        return self.found["bytes"] > READ


def hdf5(path: str, room: Room) -> None:
    """Go through a NetCDF-4 file: claims first, and then what is there."""
    import h5py

    room.bound()
    with h5py.File(path, "r") as file:
        parts: list[Any] = [file]
        file.visititems(lambda _, part: parts.append(part))
        for part in parts:
            for value in part.attrs.values():
                room.take(bytes=getattr(value, "nbytes", 0))
        arrays = [part for part in parts if isinstance(part, h5py.Dataset)]
        for part in arrays:
            chunk = math.prod(part.chunks or ()) * part.dtype.itemsize
            claimed = (part.size or 0) * part.dtype.itemsize
            room.take(values=part.size or 0, bytes=max(claimed, chunk))
        read = 0
        for part in arrays:
            read += (part.size or 0) * part.dtype.itemsize
            if read > READ:
                return
            if part.dtype.hasobject and part.ndim:
                for at in range(0, part.shape[0], ROWS):
                    room.take(bytes=sum(map(_length, part[at : at + ROWS].ravel())))
            else:
                part[()]


def zarr(path: str, room: Room) -> None:
    """Go through a Zarr store: a chunk may be larger than the array that it is of."""
    import zarr

    room.bound()
    arrays = [array for _, array in zarr.open_group(path, mode="r").arrays()]
    for array in arrays:
        whole = max(array.size, math.prod(array.chunks), math.prod(array.shards or ()))
        room.take(values=array.size, bytes=whole * array.dtype.itemsize)
    read = 0
    for array in arrays:
        read += array.size * array.dtype.itemsize
        if read > READ:
            return
        found: Any = array[...]
        if found.dtype.hasobject:
            room.take(bytes=sum(map(_length, found.ravel())))


def parquet(path: str, room: Room) -> None:
    """Go through a Parquet file some rows at a time, the words of dictionaries written out."""
    import pyarrow
    from pyarrow.parquet import ParquetFile

    room.bound()
    with ParquetFile(path) as file:
        about = file.metadata
        room.take(columns=about.num_columns, values=about.num_rows * about.num_columns)
        for batch in file.iter_batches(ROWS, use_threads=False):
            for column in batch.columns:
                words = pyarrow.types.is_dictionary(column.type)
                room.take(bytes=(column.dictionary_decode() if words else column).nbytes)
            if room.is_read:
                return


def shapes(path: str, room: Room) -> None:
    """Go through a file of shapes: a view of a GeoPackage may have rows without end."""
    import os

    import pyogrio
    from pyogrio import raw

    room.bound()
    about = pyogrio.read_info(path, force_feature_count=True)
    fields, rows = len(about["fields"]), int(about["features"])
    room.take(columns=fields, values=max(0, rows) * (fields + 1))
    if os.path.getsize(path) > READ:
        return
    _, _, outlines, columns = raw.read(path)
    for column in [outlines, *columns]:
        if column is not None:
            plain = not column.dtype.hasobject
            room.take(bytes=column.nbytes if plain else sum(map(_length, column.ravel())))


def _length(value: Any) -> int:
    """Return how many bytes a text, some bytes or an array take."""
    return getattr(value, "nbytes", 0) or (len(value) if hasattr(value, "__len__") else 8)


KINDS: dict[str, Callable[[str, Room], None]] = {
    "hdf5": hdf5,
    "zarr": zarr,
    "parquet": parquet,
    "shapes": shapes,
}


def gone_through(line: str, own: bool = False) -> str:
    """Go through the file of a line, and return the answer; `own` as of `Room`.

    >>> gone_through("parquet 10 100 800 /nowhere/a.parquet")
    "error [Errno 2] Failed to open local file '/nowhere/a.parquet'. ..."
    """
    kind, columns, values, size, path = line.rstrip("\n").split(" ", 4)
    try:
        KINDS[kind](path, Room(int(columns), int(values), int(size), own))
    except FullError as full:
        return str(full)
    except ImportError:
        # Whoever reads it says what is missing.
        return "ok"
    except MemoryError:
        return "error it takes far more memory than a file of its size"
    except BaseException as error:
        text = str(error).strip().splitlines()
        return f"error {text[0] if text else type(error).__name__}"
    return "ok"


if __name__ == "__main__":
    for asked in sys.stdin:
        sys.stdout.write(gone_through(asked, own=True) + "\n")
        sys.stdout.flush()
