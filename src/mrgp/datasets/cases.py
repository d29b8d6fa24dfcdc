"""Cases to score models on: data, and values of a target that were held out of them."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from mrgp.data import Dataset, Observations
from mrgp.selection.comparing import split
from mrgp.supports import Nodes, Points, Support

VARIABLE = "MRGP_DATA"


class Known(NamedTuple):
    """A field on a support where its values are known.

    >>> import mrgp
    >>> len(Known(mrgp.points([[0.0]]), np.array([1.0])).support)
    1
    """

    support: Support
    values: Float[np.ndarray, " n"]


@dataclasses.dataclass(frozen=True)
class Case:
    """Data, and values `y` of the target on a test support that were held out of them.

    `site` names the site of each value, where scores are to be taken site by site. `maps` are grids
    of points to be predicted and drawn, by title. `input_units` are those of inputs by name.
    `truth` has the noise-free values, where they are known. `means` are averages of the values held
    out, over windows of time, by name. `fields` has the noise-free field on other supports, by
    name; `exposure` is that of each value held out, where values have one.
    """

    data: Dataset
    support: Support
    y: Float[np.ndarray, " n"]
    target: str
    task: str
    site: tuple[str, ...] | None = None
    maps: dict[str, Support] = dataclasses.field(default_factory=dict)
    input_units: dict[str, str] = dataclasses.field(default_factory=dict)
    truth: Float[np.ndarray, " n"] | None = dataclasses.field(default=None, kw_only=True)
    means: dict[str, Observations] = dataclasses.field(default_factory=dict, kw_only=True)
    fields: dict[str, Known] = dataclasses.field(default_factory=dict, kw_only=True)
    exposure: Float[np.ndarray, " n"] | None = dataclasses.field(default=None, kw_only=True)

    @property
    def held_out(self) -> Observations:
        """The values held out, as observations of the target.

        >>> from mrgp.datasets import dependent
        >>> dependent(seed=0).held_out.process
        ('fine', 'y')
        """
        about = {"task": self.task, "name": self.target, "units": self.data.units[self.task]}
        if self.exposure is not None:
            likelihood = self.data[self.target, self.task].likelihood
            about |= {"likelihood": likelihood, "exposure": self.exposure}
        return Observations(self.support, self.y, **about)

    @property
    def bare(self) -> "Case":
        """The case without the covariates of points and nodes.

        >>> from mrgp.datasets import dependent
        >>> dependent(seed=0).bare.data.covariates is None
        True
        """

        def of(seen: Observations) -> Observations:
            return seen.replace(support=_bare(seen.support))

        means = {name: of(mean) for name, mean in self.means.items()}
        data, support = Dataset(map(of, self.data)), _bare(self.support)
        return dataclasses.replace(self, data=data, support=support, means=means)


def _bare(support: Support) -> Support:
    """Return points or nodes without their covariates, whose columns come last."""
    if not support.covariates:
        return support
    if not isinstance(support, Points | Nodes):
        raise ValueError(f"covariates = false is for points and nodes; got {support!r}.")
    count = support.dimension - sum(len(field.names) for field in support.covariates)
    x, inputs = np.asarray(support.x)[..., :count], support.input_names[:count]
    axes = support.axes and support.axes[:count]
    return dataclasses.replace(support, x=x, inputs=inputs, axes=axes, covariates=None)


@dataclasses.dataclass(frozen=True)
class Simulation(Case):
    """Data, and on a test support the noise-free truth and fresh noisy values of the target.

    >>> from mrgp.datasets import dependent
    >>> world = dependent(seed=0)
    >>> world.target, len(world.truth) == len(world.support)
    ('fine', True)
    """

    truth: Float[np.ndarray, " n"] = dataclasses.field(kw_only=True)


@dataclasses.dataclass(frozen=True)
class Recording(Case):
    """Data, and on a test support the values of the target that were held out.

    >>> import mrgp
    >>> seen, gone = (mrgp.points([[hour]], inputs="hour") for hour in (0.0, 1.0))
    >>> data = Dataset([Observations(seen, [8.0], task="pm25", name="KC1")])
    >>> Recording(data, gone, np.array([9.0]), target="KC1", task="pm25").support
    Points(1 mean: hour 1 to 1)
    """


def hold_out(
    data: Dataset, process: tuple[str, str], rows: Bool[np.ndarray, " n"], **about: Any
) -> Recording:
    """Hold some values of a process out of data."""
    train, gone = split(data, process, rows)
    return Recording(train, gone.support, gone.y, *process, exposure=gone.exposure, **about)


def measured(support: Support, y: Any, task: str, name: str) -> Observations:
    """Return a column of concentrations as observations, in the units of all recorded data."""
    return Observations(support, y.to_numpy(np.float64), task=task, name=name, units="ug/m3")


def check_name(
    where: str, name: str, there: Sequence[str], noun: str = "fold", those: str = "the folds"
) -> None:
    """Refuse a fold or a site that is not among those there are."""
    if name not in there:
        raise ValueError(f"{where}: no {noun} is named {name!r}; {those} are {tuple(there)}.")


def data_file(file: str) -> Path:
    """Return the path of a file of recorded data, or say which variable names its folder."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise FileNotFoundError(
            f"Recorded data are read from the folder that the variable {VARIABLE} names, and it is"
            f" not set. Set it to the folder that holds {file}."
        )
    if not (Path(folder) / file).is_file():
        raise FileNotFoundError(
            f"{VARIABLE} names {folder}, which has no {file}. Set {VARIABLE} to the folder that"
            " holds it."
        )
    return Path(folder) / file
