"""Results of cells in a folder, each written as soon as it is there."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from mrgp._drafts import draft, write_text
from mrgp.datasets import Case
from mrgp.distributions import (
    COUNTS,
    GAMMAS,
    GAUSSIANS,
    LOG_NORMALS,
    PROBIT_NORMALS,
    Distribution,
)
from mrgp.experiments.design import Cell
from mrgp.experiments.scoring import ARRAYS, LATENT, NOISY, Scored
from mrgp.prediction import Prediction
from mrgp.supports import Support

_DISTRIBUTIONS = (GAUSSIANS, LOG_NORMALS, PROBIT_NORMALS, GAMMAS, COUNTS)
KINDS: dict[str, Distribution] = {type(kind).__name__: kind for kind in _DISTRIBUTIONS}


class Store:
    """A folder with a JSON file of scores and an npz file of predictions for each cell.

    >>> import tempfile
    >>> from mrgp import experiments
    >>> cell = experiments.plan(experiments.find("dependent"), quick=True)[0][0]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store, case = Store(Path(folder)), cell.load()
    ...     store.keep(cell, case, Scored([{"rmse": 0.5}], {"cpu_seconds": 2.0}, {}, {}))
    ...     store.has(cell, case), store.read(cell).rows
    (True, [{'rmse': 0.5}])
    """

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def has(self, cell: Cell, case: Case) -> bool:
        """Tell whether the result of a cell is there, for this model and these data."""
        try:
            known = json.loads(self._path(cell, "json").read_text())
            arrays = self._path(cell, "npz").read_bytes()
            # What was kept by an earlier version has no checksum.
            whole = known.get("checksum") in (None, _checksum(arrays))
            same = known["fingerprint"] == cell.fingerprint(case)
            return whole and same and (not cell.timed or "cpu_seconds" in known["costs"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False

    def keep(self, cell: Cell, case: Case, scored: Scored) -> None:
        """Write the result of a cell; the scores last, so that what has scores is whole."""
        content = {
            "fingerprint": cell.fingerprint(case),
            "cell": cell.labels,
            "rows": scored.rows,
            "costs": scored.costs,
        }
        arrays = {f"draws/{name}": values for name, values in scored.draws.items()}
        for name, prediction in scored.predictions.items():
            arrays |= _arrays(f"predictions/{name}", prediction)
        with draft(self._path(cell, "npz")) as named:
            np.savez_compressed(named, allow_pickle=False, **arrays)
            content["checksum"] = _checksum(named.read_bytes())
        write_text(self._path(cell, "json"), json.dumps(content, indent=1) + "\n")

    def read(self, cell: Cell) -> Scored:
        """Return the scores and costs of a cell, without its predictions."""
        content = json.loads(self._path(cell, "json").read_text())
        return Scored(content["rows"], content["costs"], {}, {})

    def draws(self, cell: Cell) -> dict[str, np.ndarray]:
        """Return what was sampled."""
        with np.load(self._path(cell, "npz")) as arrays:
            return {n.removeprefix("draws/"): arrays[n] for n in arrays if n.startswith("draws/")}

    def predictions(self, cell: Cell, case: Case) -> dict[str, Prediction]:
        """Return the predictions of a cell, by name."""
        supports = {NOISY: case.support, LATENT: case.support, **case.maps}
        with np.load(self._path(cell, "npz")) as arrays:
            return {
                name: _prediction(f"predictions/{name}", arrays, support, case)
                for name, support in supports.items()
                if f"predictions/{name}/means" in arrays
            }

    def _path(self, cell: Cell, kind: str) -> Path:
        return self.folder / f"{cell.slug}.{kind}"


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _arrays(name: str, prediction: Prediction) -> dict[str, np.ndarray]:
    found = {f"{name}/{field}": getattr(prediction, field) for field in ARRAYS}
    found[f"{name}/distribution"] = np.array(type(prediction.distribution).__name__)
    for label, expert in prediction.experts.items():
        found |= _arrays(f"{name}/experts/{label}", expert)
        found[f"{name}/weights/{label}"] = prediction.weights[label]
    return found


def _prediction(name: str, arrays: Any, support: Support, case: Case) -> Prediction:
    begin = f"{name}/weights/"
    weights = {key.removeprefix(begin): arrays[key] for key in arrays if key.startswith(begin)}
    parts = {n: _prediction(f"{name}/experts/{n}", arrays, support, case) for n in weights}
    about = (support, case.task, case.target, case.data.units[case.task])
    fields = (arrays[f"{name}/{field}"] for field in ARRAYS)
    of = str(arrays[f"{name}/distribution"])
    return Prediction(*about, *fields, experts=parts, weights=weights, distribution=KINDS[of])
