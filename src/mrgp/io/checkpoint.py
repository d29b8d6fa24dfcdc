"""Save and load a fit: one zip of a JSON header and NumPy arrays, nothing executable."""

import dataclasses
import functools
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mrgp import data, gp, inference, kernels, likelihoods, models, parameters, supports
from mrgp._drafts import draft
from mrgp.inference import Fit

SCHEMA = 9
HEADER = "header.json"
SEAL = 64
LARGE, MOST_GROWTH = 1 << 28, 20
"""Members may grow to 256 MiB, or to this many times the size of the file."""

LARGEST_HEADER = 1 << 25

AGAIN = "Copy the file again, or fit again."
FOREIGN = "is not a fit saved by mrgp.save."

_ROOMS = (parameters, supports, kernels, likelihoods, data, gp, models, inference)
_CLASSES = {
    found
    for room in _ROOMS
    for found in vars(room).values()
    if isinstance(found, type) and (dataclasses.is_dataclass(found) or issubclass(found, tuple))
}
"""What files may hold: the values that these rooms have a class for."""


def _name(cls: type) -> str:
    """Return the name of a class in files; products of supports are told from those of kernels."""
    return "supports.Product" if cls is supports.Products else cls.__name__


REGISTRY: dict[str, type] = {_name(c): c for c in _CLASSES}


def save(fit: Fit, path: Any) -> None:
    """Write a fit to exactly the path given.

    Exact fits hold the training data, and so does their file.

    >>> import mrgp, tempfile
    >>> sensors = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([sensors]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mrgp.save(fit, folder + "/fit")
    ...     mrgp.load(folder + "/fit")
    Fit(MRGP, 3 values, converged: ... steps)
    """
    if not isinstance(fit, Fit):
        raise TypeError(f"save takes a fit; got {type(fit).__name__}.")
    arrays: list[np.ndarray] = []
    header = {"schema": SCHEMA, "versions": _versions(), "fit": _encode(fit, arrays, "fit")}
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"save: {path} is a folder; give the name of a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"save: there is no folder {path.parent}; make it first.")
    with draft(path) as named:
        _write(named, header, arrays, zipfile.ZIP_DEFLATED)
        if _expands(named):
            _write(named, header, arrays, zipfile.ZIP_STORED)
        seal(named)


def load(path: Any, types: Sequence[type] = ()) -> Fit:
    """Read a fit back; `types` names your own kernel or model classes that it uses.

    >>> import mrgp, tempfile
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> quick = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)
    >>> fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), optimiser=quick)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mrgp.save(fit, f"{folder}/three.fit")
    ...     again = mrgp.load(f"{folder}/three.fit")
    >>> again.parameters() == fit.parameters()
    True
    """
    if not isinstance(path, str | Path):
        raise TypeError(f"load takes the path of a saved fit; got {type(path).__name__}.")
    if not Path(path).is_file():
        raise FileNotFoundError(f"load: there is no file {path}.")
    taken = [t.__name__ for t in types if t.__name__ in REGISTRY]
    if taken:
        raise ValueError(f"load: mrgp has a class {taken[0]} of its own; give yours another name.")
    registry = REGISTRY | {t.__name__: t for t in types}
    # Opened once: another process may put a new file in its place meanwhile.
    with Path(path).open("rb") as file:
        try:
            fit = _read(file, registry)
        except _ToldError as error:
            hint = f" It is a configuration: mrgp fit {path}" if str(path).endswith(".toml") else ""
            raise ValueError(f"load: {path} {error}{hint}") from None
        except Exception as error:
            # Whatever a file may hold, it is the file that is wrong.
            raise ValueError(f"load: {path} is damaged ({_brief(error)}). {AGAIN}") from None
    if not isinstance(fit, Fit):
        raise ValueError(f"load: {path} holds no fit.")
    return fit


class _ToldError(ValueError):
    """What is wrong with a file, in words that follow its name."""


def _brief(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200]}" if text else type(error).__name__


def seal(path: Path) -> None:
    """Write the SHA-256 of a zip file as its comment, which are the last bytes of all."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"0" * SEAL
    with path.open("r+b") as file:
        mark = _digest(file)
        file.seek(-SEAL, os.SEEK_END)
        file.write(mark)


def _digest(file: BinaryIO) -> bytes:
    """Return the SHA-256 of all bytes of a file but those of its seal."""
    left, found = file.seek(0, os.SEEK_END) - SEAL, hashlib.sha256()
    file.seek(0)
    while left > 0 and (part := file.read(min(left, 1 << 20))):
        found.update(part)
        left -= len(part)
    return found.hexdigest().encode()


def _read(file: BinaryIO, registry: dict[str, type]) -> Any:
    """Return what a file holds; nothing that was not written so is read."""
    if not zipfile.is_zipfile(file):
        begins = file.seek(0) == 0 and file.read(4) == b"PK\x03\x04"
        raise _ToldError(f"is damaged: it is cut short. {AGAIN}" if begins else FOREIGN)
    mark = _digest(file)
    sealed = file.read(SEAL) == mark
    with zipfile.ZipFile(file) as archive:
        if HEADER not in archive.namelist():
            raise _ToldError(f"{FOREIGN[:-1]}: it has no {HEADER}.")
        if _too_large(archive, file.seek(0, os.SEEK_END)):
            raise _ToldError(f"would take far more memory than a saved fit of its size. {AGAIN}")
        header = json.loads(archive.read(HEADER))
        _check_schema(header)
        if not sealed:
            raise _ToldError(f"is damaged: its checksum is not that of its content. {AGAIN}")
        return _decode(header["fit"], functools.partial(_array, archive), registry)


def _check_schema(header: dict[str, Any]) -> None:
    schema = int(header["schema"])
    if schema == SCHEMA:
        return
    newer = schema > SCHEMA
    wrote = header.get("versions", {}).get("mrgp", "that wrote it")
    advice = "Update mrgp." if newer else f"Fit again, or load it with mrgp {wrote}."
    raise _ToldError(
        f"has schema {schema}, {'newer' if newer else 'older'} than this version's {SCHEMA}."
        f" {advice}"
    )


def _too_large(archive: zipfile.ZipFile, size: int) -> bool:
    """Tell whether members grow as no fit does: `save` does not pack what would."""
    whole = sum(member.file_size for member in archive.infolist())
    header = archive.getinfo(HEADER).file_size
    return whole > max(LARGE, MOST_GROWTH * size) or header > LARGEST_HEADER


def _expands(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return _too_large(archive, path.stat().st_size)


def _write(path: Path, header: dict[str, Any], arrays: list[np.ndarray], packing: int) -> None:
    with zipfile.ZipFile(path, "w", packing) as archive:
        archive.writestr(HEADER, json.dumps(header, indent=1))
        for number, array in enumerate(arrays):
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            archive.writestr(_member(number), buffer.getvalue())


def _array(archive: zipfile.ZipFile, number: int) -> np.ndarray:
    return np.load(io.BytesIO(archive.read(_member(number))), allow_pickle=False)


def _member(number: int) -> str:
    return f"arrays/{number}.npy"


def _versions() -> dict[str, str]:
    found = {}
    for package in ("mrgp", "jax", "equinox", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def _encode(value: Any, arrays: list[np.ndarray], where: str) -> Any:
    """Turn a value into JSON, setting arrays aside."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        # Exact fits hold the supports of their records twice, as the same arrays.
        known = next((i for i, array in enumerate(arrays) if array is value), None)
        if known is None:
            arrays.append(value)
        return {"array": len(arrays) - 1 if known is None else known}
    if isinstance(value, tuple | list):
        items = [_encode(v, arrays, f"{where}[{i}]") for i, v in enumerate(value)]
        if type(value) in _CLASSES:
            return {"class": _name(type(value)), "items": items}
        return {"tuple" if isinstance(value, tuple) else "list": items}
    if isinstance(value, dict):
        pairs = [
            [_encode(k, arrays, where), _encode(v, arrays, f"{where}[{k!r}]")]
            for k, v in value.items()
        ]
        return {"dict": pairs}
    if isinstance(value, supports.Field) and not (value.on_grid or value.in_rows):
        names = ", ".join(map(repr, value.names))
        raise TypeError(
            f"save: the covariate {names} comes from a Python function, and a file holds no code."
            " Sample the function on a grid, fit with with_covariates(xarray.DataArray(...)), and"
            " save that fit."
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            f.name: _encode(getattr(value, f.name), arrays, f"{where}.{f.name}")
            for f in dataclasses.fields(value)
        }
        return {"class": _name(type(value)), "fields": fields}
    raise TypeError(
        f"save: {where} is a {type(value).__name__}, which cannot be written to a file. Use plain"
        " values in the recipe."
    )


def _decode(value: Any, array: Any, registry: dict[str, type]) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return array(value["array"])
    if "tuple" in value:
        return tuple(_decode(v, array, registry) for v in value["tuple"])
    if "list" in value:
        return [_decode(v, array, registry) for v in value["list"]]
    if "dict" in value:
        return {_decode(k, array, registry): _decode(v, array, registry) for k, v in value["dict"]}
    name = value["class"]
    if name not in registry:
        raise _ToldError(
            f"uses the class {name!r}, which mrgp does not know. If it is yours, call"
            f" mrgp.load(path, types=[{name}])."
        )
    if issubclass(registry[name], tuple):
        return registry[name](*(_decode(v, array, registry) for v in value["items"]))
    fields = {k: _decode(v, array, registry) for k, v in value["fields"].items()}
    wanted = {field.name for field in dataclasses.fields(registry[name])}
    if set(fields) != wanted:
        raise TypeError(f"{name} has the fields {sorted(fields)}, not {sorted(wanted)}")
    # Fields are set as they were saved: constructors validate and convert user input, not state.
    made = object.__new__(registry[name])
    for key, content in fields.items():
        object.__setattr__(made, key, content)
    return made
