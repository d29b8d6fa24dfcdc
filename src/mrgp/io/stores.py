"""Maps in Zarr, written tile by tile: what is there is not computed again."""

import contextlib
import glob
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

import mrgp
from mrgp._cluster import Team
from mrgp._drafts import draft, exchange
from mrgp._extras import needed
from mrgp.inference import Progress
from mrgp.io.tiles import TILE_CELLS, Span, Tiling, spans, tile, tile_shape

STORE, BEGUN, DONE, LOCK = "map.zarr", "begun", "done", "lock"
NETCDF_ROWS = 2**21
"""Cells that go from a store to a NetCDF file together."""


def write_store(
    tiling: Tiling,
    template: Any,
    path: Path,
    mark: str,
    team: Team,
    progress: Progress,
    most: int = TILE_CELLS,
) -> tuple[int, int]:
    """Predict a grid into a Zarr store, tile by tile; return the tiles, and those there already.

    The store grows in a draft beside `path` that is named after the fit and the question (`mark`)
    and takes its place when it is whole. A run that was stopped or killed goes on with the draft.
    Tiles are written by this process alone, wherever they are computed. The `template` is a Dataset
    with the coordinates and attributes of the map.
    """
    shape = tile_shape(tiling.shape, most)
    work = path.with_name(f".{path.name}.{_short(mark, shape)}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(work, path):
        _clean(path, work)
        if not (work / BEGUN).exists() or not (work / STORE).exists():
            # A kill may have come when the store was in its place and its draft not yet gone.
            with _kept(path):
                _begin(work, tiling, template, shape)
        known = set(os.listdir(work / DONE))
        todo = {_name(span): span for span in spans(tiling.shape, shape)}
        left = [name for name in todo if name not in known]
        done = len(todo) - len(left)
        progress.start("predict", len(todo))
        progress.update(0, f"{done} of {len(todo)} tiles")
        for number, values in team.spread(tile, tiling, [todo[name] for name in left]):
            name = left[number]
            with _kept(path):
                _keep(work, name, todo[name], tiling.fields, shape, values)
            done += 1
            progress.update(done, f"{done} of {len(todo)} tiles")
        progress.finish(f"{len(todo)} tiles, {len(todo) - len(left)} of them were there")
        with _kept(path):
            _place(work, path)
    return len(todo), len(todo) - len(left)


def to_netcdf(store: Path, path: Path) -> None:
    """Write a finished store as a NetCDF file, some rows at a time: memory does not grow."""
    import xarray as xr

    h5netcdf = needed("h5netcdf", f'{path}: .nc files need h5netcdf: pip install "mrgp[io]".')
    with xr.open_zarr(store, chunks=None, consolidated=False) as made, draft(path) as named:
        large = [str(name) for name in made.data_vars]
        with _Sink(named, "w+") as sink:
            with sink.told():
                sink.write(made.drop_vars(large).to_netcdf(engine="h5netcdf"))
            with sink.told(), h5netcdf.File(sink, "r+") as file:
                for name in large:
                    _copy(made[name], file, sink)


class _Sink(io.FileIO):
    """A file that HDF5 writes to: it crashes where a write fails, and so none seems to.

    What found no room is held in memory, for HDF5 to read again until it is closed.
    """

    def __init__(self, path: Path, mode: str):
        super().__init__(path, mode)
        self.failed: OSError | None = None
        self.held: list[tuple[int, bytes]] = []

    def write(self, content: Any) -> int:
        at, left = self.tell(), memoryview(content).cast("B")
        size = len(left)
        try:
            while self.failed is None and len(left):
                left = left[super().write(left) :]
        except OSError as error:
            self.failed = error
        if len(left):
            self.held.append((at + size - len(left), bytes(left)))
            self.seek(at + size)
        return size

    def readinto(self, buffer: Any) -> int:
        at, wanted = self.tell(), memoryview(buffer).cast("B")
        found = super().readinto(buffer) or 0
        for begin, content in self.held:
            first, last = max(at, begin), min(at + len(wanted), begin + len(content))
            if first < last:
                wanted[first - at : last - at] = content[first - begin : last - begin]
                found = max(found, last - at)
        self.seek(at + found)
        return found

    def seek(self, at: int, whence: int = os.SEEK_SET) -> int:
        found = super().seek(at, whence)
        ends = [begin + len(content) for begin, content in self.held]
        return super().seek(max([found, *ends])) if whence == os.SEEK_END else found

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self.failed = self.failed or error
            return size or 0

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Raise at the end what failed, whatever HDF5 made of it."""
        try:
            yield
        except Exception:
            if self.failed is None:
                raise
        if self.failed is not None:
            raise self.failed


def _copy(field: Any, file: Any, sink: _Sink) -> None:
    """Copy a variable of a store into a file, a slab of its first dimension at a time."""
    made = file.create_variable(field.name, field.dims, "f8", fillvalue=np.nan)
    for key, value in field.attrs.items():
        made.attrs[key] = value
    if len(field.attrs.get("coordinates", "")) == 0:
        beside = [str(name) for name, c in field.coords.items() if name not in field.dims]
        bounds = {c.attrs.get("bounds") for c in field.coords.values()}
        if shown := " ".join(name for name in beside if name not in bounds):
            made.attrs["coordinates"] = shown
    for span in spans(field.shape, tile_shape(field.shape, NETCDF_ROWS)):
        made[span] = field[span].to_numpy()
        file.flush()
        if sink.failed is not None:
            return


def mark_of(fit: Path, *words: Any) -> str:
    """Return what tells one map from another: the fit's bytes, the question, and versions.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (file := Path(folder) / "fit").write_bytes(b"a fit")
    ...     mark_of(file, "lon=0:1:0.1") == mark_of(file, "lon=0:1:0.2")
    False
    """
    found = hashlib.sha256()
    with fit.open("rb") as file:
        while part := file.read(2**20):
            found.update(part)
    versions = (mrgp.__version__, jax.__version__, np.__version__)
    found.update(json.dumps([*map(str, words), *versions]).encode())
    return found.hexdigest()


def _short(mark: str, shape: tuple[int, ...]) -> str:
    return hashlib.sha256(f"{mark} {shape}".encode()).hexdigest()[:16]


@contextlib.contextmanager
def _kept(path: Path) -> Iterator[None]:
    """Name the map that could not be written, and say that nothing of it is lost."""
    try:
        yield
    except OSError as error:
        raise OSError(
            f"{path} could not be written: {error.strerror or error}. The tiles that are there are"
            " kept: the same command goes on with them."
        ) from error


def _clean(path: Path, mine: Path) -> None:
    """Remove drafts of other questions for the same place, whose writers are gone."""
    try:
        import fcntl
    except ImportError:
        return
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        if left == mine or not left.is_dir():
            continue
        with contextlib.suppress(OSError), (left / LOCK).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def _alone(work: Path, path: Path) -> Iterator[None]:
    """Hold a draft: no second process writes to it. The lock ends with the process."""
    work.mkdir(exist_ok=True)
    with (work / LOCK).open("a") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass
        except OSError:
            raise OSError(
                f"{path} is being written by another process. Wait for it, or give another --out."
            ) from None
        yield


def _begin(work: Path, tiling: Tiling, template: Any, shape: tuple[int, ...]) -> None:
    """Write the coordinates and the empty fields of a store, and at last that it is begun."""
    zarr = needed("zarr", f'{work}: maps in Zarr need zarr: pip install "mrgp[io]".')
    store = work / STORE
    shutil.rmtree(store, ignore_errors=True)
    shutil.rmtree(work / DONE, ignore_errors=True)
    template.drop_vars(tiling.fields).to_zarr(store, mode="w", zarr_format=3, consolidated=False)
    group = zarr.open_group(str(store), mode="r+", use_consolidated=False)
    beside = " ".join(str(n) for n, c in template.coords.items() if c.ndim == 0)
    for field in tiling.fields:
        group.create_array(
            field,
            shape=tiling.shape,
            chunks=shape,
            dtype="f8",
            fill_value=np.nan,
            dimension_names=tiling.dims,
            attributes=template[field].attrs | ({"coordinates": beside} if beside else {}),
        )
    (work / DONE).mkdir()
    (work / BEGUN).touch()


def _keep(
    work: Path,
    name: str,
    span: Span,
    fields: tuple[str, ...],
    shape: tuple[int, ...],
    values: np.ndarray,
) -> None:
    """Bring a tile to the disk, and then the word that it is there."""
    import zarr

    group: Any = zarr.open_group(str(work / STORE), mode="r+", use_consolidated=False)
    chunk = "/".join(str(part.start // step) for part, step in zip(span, shape, strict=True))
    for field, found in zip(fields, values, strict=True):
        group[field][span] = found
        file = work / STORE / field / "c" / chunk
        if file.exists():
            with file.open("r+b") as written:
                os.fsync(written.fileno())
    (work / DONE / name).touch()


def _name(span: Span) -> str:
    return "-".join(str(part.start) for part in span)


def _place(work: Path, path: Path) -> None:
    """Put a whole store in its place; what a kill left half-written goes."""
    store = work / STORE
    for left in store.rglob("*.partial"):
        left.unlink()
    # From here on the draft is none: what it has may be the old store.
    (work / BEGUN).unlink()
    if path.exists():
        exchange(store, path)
    else:
        os.replace(store, path)
    shutil.rmtree(work, ignore_errors=True)
