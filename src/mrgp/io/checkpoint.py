"""Save and load a fit: one zip of a JSON header and NumPy arrays, nothing executable."""

import dataclasses
import functools
import io
import json
import zipfile
import zlib
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from mrgp import gp, inference, kernels, likelihoods, models, parameters, supports
from mrgp.data import Record, Scaling
from mrgp.inference import Fit

SCHEMA = 6
HEADER = "header.json"
DAMAGE = (KeyError, TypeError, AttributeError, RecursionError, OSError, zlib.error)
DAMAGE += (json.JSONDecodeError,)

_CLASSES = (
    Fit,
    Record,
    Scaling,
    likelihoods.Gaussian,
    inference.Status,
    inference.LBFGS,
    inference.Adam,
    inference.Training,
    gp.Inducing,
    gp.Posterior,
    gp.Whitened,
    gp.Mixture,
    gp.Sites,
    gp.Exact,
    gp.Collapsed,
    models.MRGP,
    models.MRGPRN,
    models.MRDGP,
    models.Cascade,
    models.VBAgg,
    models.CenterPoint,
    models.Dependent,
    models.LinearModel,
    models.OneField,
    models.Mixed,
    models.Levels,
    models.Diagonal,
    models.Shared,
    models.Network,
    models.NetworkPosterior,
    models.Factors,
    models.Tree,
    models.Part,
    models.Branch,
    models.Blend,
    supports.Points,
    supports.Nodes,
    supports.Boxes,
    supports.Polygons,
    supports.Products,
    supports.Shapes,
    supports.Axis,
    supports.Field,
    supports.Grid,
    supports.Midpoint,
    supports.GaussLegendre,
    supports.Sobol,
    kernels.RBF,
    kernels.Matern12,
    kernels.Matern32,
    kernels.Matern52,
    kernels.RationalQuadratic,
    kernels.Periodic,
    kernels.SpectralMixture,
    kernels.Linear,
    kernels.Polynomial,
    kernels.ArcCosine,
    kernels.Constant,
    kernels.White,
    kernels.Sum,
    kernels.Product,
    kernels.Scale,
    kernels.Separable,
    parameters.Parameter,
    parameters.Normal,
    parameters.LogNormal,
    parameters.Gamma,
    parameters.InverseGamma,
    parameters.HalfNormal,
    *parameters.TRANSFORMS,
)


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
    # Written beside the path and then moved: a fit that was there stays whole until the end.
    draft = path.with_name(path.name + ".part")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(HEADER, json.dumps(header, indent=1))
        for number, array in enumerate(arrays):
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            archive.writestr(_member(number), buffer.getvalue())
    draft.replace(path)


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
    if not zipfile.is_zipfile(path):
        raise ValueError(f"load: {path} is not a fit saved by mrgp.save.")
    taken = [t.__name__ for t in types if t.__name__ in REGISTRY]
    if taken:
        raise ValueError(f"load: mrgp has a class {taken[0]} of its own; give yours another name.")
    registry = REGISTRY | {t.__name__: t for t in types}
    with zipfile.ZipFile(path) as archive:
        if HEADER not in archive.namelist():
            raise ValueError(f"load: {path} is not a fit saved by mrgp.save: it has no {HEADER}.")
        try:
            header = json.loads(archive.read(HEADER))
            schema = int(header["schema"])
            array = functools.partial(_array, archive)
            fit = None if schema != SCHEMA else _decode(header["fit"], array, registry)
        except DAMAGE as error:
            raise ValueError(f"load: {path} is damaged ({error}). Save the fit again.") from None
    if schema != SCHEMA:
        newer = schema > SCHEMA
        wrote = header.get("versions", {}).get("mrgp", "that wrote it")
        advice = "Update mrgp." if newer else f"Fit again, or load it with mrgp {wrote}."
        raise ValueError(
            f"load: {path} has schema {schema}, {'newer' if newer else 'older'} than this version's"
            f" {SCHEMA}. {advice}"
        )
    if not isinstance(fit, Fit):
        raise ValueError(f"load: {path} holds no fit.")
    return fit


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
    if isinstance(value, supports.Field) and not isinstance(value.source, supports.Grid):
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
        raise ValueError(
            f"load: the file uses the class {name!r}, which mrgp does not know. If it is yours,"
            f" call mrgp.load(path, types=[{name}])."
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
