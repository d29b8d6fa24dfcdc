"""Sources that average the values of another, errors included: the dependent truth (theory 7.2)."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp._types import float64
from mrgp.data import Dataset, Frame, Observations
from mrgp.models.approximate import refuse_likelihoods
from mrgp.models.contract import PlainRecipe, Weights
from mrgp.models.linear import LinearModel
from mrgp.models.mrgp import EXACT_LIMIT, MRGP, exact_is_cheap
from mrgp.models.noise import Shared
from mrgp.parameters import unwrap
from mrgp.supports import Nodes, Points, shared_places


@dataclasses.dataclass(frozen=True, repr=False)
class Dependent(PlainRecipe):
    """MR-GP for sources that report averages of the values of another source, errors included.

    `averages` maps each such source to the one it averages: `{"coarse": "fine"}`. A place has one
    error, whichever values it enters, and each average adds noise of its own. The fine source has
    points, the coarse one nodes or points; places the fine source did not observe have errors of
    the same variance. The model is exact.

    >>> import mrgp
    >>> fine = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [0.0, 2.0], name="hourly")
    >>> mean = mrgp.Observations(mrgp.nodes([[[0.0], [1.0]]]), [1.0], name="daily")
    >>> model = Dependent(averages={"daily": "hourly"}).build(mrgp.Dataset([fine, mean]))
    >>> model.noise.shares["hourly"].tolist()  # the mean has half of each error
    [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    """

    model: Any = dataclasses.field(default_factory=MRGP)
    averages: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, MRGP):
            raise TypeError(f"Dependent: model= takes mrgp.MRGP(...); got {self.model!r}.")
        if self.model.method not in ("auto", "exact") or self.model.inducing is not None:
            raise ValueError(
                "Dependent is exact: leave method= and inducing= of its MRGP at their defaults."
            )
        if self.model.bias != "none":
            raise ValueError(
                'Dependent: averages of values have no bias of their own; use MRGP(bias="none").'
            )
        if not isinstance(self.averages, Mapping) or not self.averages:
            raise TypeError(
                "Dependent: averages= maps each source that averages to the one it averages, as"
                f" {{'coarse': 'fine'}}; got {self.averages!r}."
            )
        for coarse, fine in self.averages.items():
            if fine in self.averages:
                raise ValueError(
                    f"Dependent: {coarse!r} averages {fine!r}, which averages"
                    f" {self.averages[fine]!r}. Name the source of single values instead."
                )

    @property
    def inner(self) -> MRGP:
        """The MR-GP of the field."""
        return self.model

    def refuses(self, weights: Weights) -> str | None:
        """Take no weights but one: shared errors are counted once."""
        plain = isinstance(weights, Mapping) and all(value == 1 for value in weights.values())
        if weights is None or plain:
            return None
        return (
            "Dependent counts shared errors once, and so has all weights one; use MRGP to weight"
            " sources."
        )

    @float64
    def build(self, data: Dataset, key: Any = 0, frame: Frame | None = None) -> LinearModel:
        """Make the model for a dataset, and find the places that sources share."""
        for name in (name for pair in self.averages.items() for name in pair):
            if name not in data.sources:
                raise ValueError(
                    f"Dependent: averages= names {name!r}, which is no source; the sources are"
                    f" {data.sources}."
                )
        refuse_likelihoods(data, "Dependent")
        frame = frame or Frame.of(data)
        field: Any = dataclasses.replace(self.model, method="exact", link="identity").build(
            data, key, frame
        )
        self._check_size(data, field)
        seen = {o.name: o.dropna() for o in data}
        for coarse, fine in self.averages.items():
            _check_supports(seen[coarse], seen[fine])
        shares, left = {}, {}
        for fine in dict.fromkeys(self.averages.values()):
            takers = [name for name in data.sources if self.averages.get(name) == fine]
            matrices = _shares(seen[fine], [seen[name] for name in takers], frame.scaling.centre)
            left |= {n: np.asarray((m**2).sum(1).mean()) for n, m in matrices.items() if n != fine}
            columns = matrices[fine].shape[1]
            shares[fine] = np.concatenate(
                [matrices.get(n, np.zeros((len(o), columns))) for n, o in seen.items()]
            )
        noise = Shared(field.noise, shares, left, tuple(self.averages.items()))
        return dataclasses.replace(field, noise=noise)

    def _check_size(self, data: Dataset, field: LinearModel) -> None:
        rule = self.model.quadrature
        if self.model.method == "auto" and not exact_is_cheap(data, unwrap(field.kernel), rule):
            count = sum(int(o.observed.sum()) for o in data)
            raise ValueError(
                f"Dependent is exact, for up to {EXACT_LIMIT} values; the data have {count}, or too"
                ' many nodes. Thin them, or insist with MRGP(method="exact").'
            )


def _check_supports(coarse: Observations, fine: Observations) -> None:
    if not isinstance(fine.support, Points) or np.any(np.asarray(fine.support.weights) != 1):
        raise ValueError(
            f"{fine.label}: Dependent averages single values, so this source needs mrgp.points(x);"
            f" got {fine.support!r}."
        )
    if not isinstance(coarse.support, Nodes | Points):
        raise ValueError(
            f"{coarse.label}: Dependent must know which values are averaged. Give this source"
            f" mrgp.nodes(x), with the places of {fine.name!r} in each region; got"
            f" {coarse.support!r}."
        )


def _shares(
    fine: Observations, takers: list[Observations], centre: Float[np.ndarray, " d"]
) -> dict[str, Float[np.ndarray, "n e"]]:
    """Return how much of the error at each place is in each value, by source."""
    all_of_them = [fine, *takers]
    places = shared_places([o.support.shift(centre) for o in all_of_them])
    found = {o.name: rows for o, rows in zip(all_of_them, places.rows, strict=True)}
    twice = found[fine.name].sum(0) > 1
    if twice.any():
        raise ValueError(
            f"{fine.label}: {int(twice.sum())} places have several values, and Dependent cannot"
            " tell which of them was averaged. Average them first, or shift them a little."
        )
    return found
