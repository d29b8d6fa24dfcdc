"""Sources that average the values of another, errors included: the dependent truth (theory 7.2)."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray, float64
from mrgp.data import Dataset, Observations, Record, Scaling
from mrgp.gp import Kernels, Posterior, Sources, exact_log_evidence, exact_posterior
from mrgp.kernels import Kernel
from mrgp.models.mrgp import EXACT_LIMIT, MRGP, exact_is_cheap
from mrgp.models.recipe import Process
from mrgp.models.single import SingleGP
from mrgp.parameters import Parameter, unwrap
from mrgp.supports import Nodes, Points, Rule, Support, shared_places


class DependentGP(eqx.Module):
    """One latent field, and errors that some sources take over from another.

    `shares[fine]` has a row for every value of all sources and a column for every place of source
    `fine`, first those that it observed: how much of its error there is in that value.
    `left[coarse]` is what averaging leaves of the variance of those errors, over the regions of
    source `coarse` on average.

    >>> import mrgp
    >>> fine = mrgp.Observations(mrgp.points([[0.0], [1.0]]), [0.0, 2.0], name="hourly")
    >>> mean = mrgp.Observations(mrgp.nodes([[[0.0], [1.0]]]), [1.0], name="daily")
    >>> model = Dependent(averages={"daily": "hourly"}).build(mrgp.Dataset([fine, mean]))
    >>> model.shares["hourly"].tolist()  # the mean has half of each error
    [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    """

    field: SingleGP
    shares: dict[str, Float[AnyArray, "n e"]]
    left: dict[str, Float[AnyArray, ""]]
    averages: tuple[tuple[str, str], ...] = eqx.field(static=True)

    @property
    def processes(self) -> tuple[Process, ...]:
        """The pairs (source, task)."""
        return self.field.processes

    @property
    def kernel(self) -> Kernel:
        """The kernel of the latent field."""
        return self.field.kernel

    @property
    def rule(self) -> Rule:
        """How boxes become nodes."""
        return self.field.rule

    def log_evidence(self, records: Sequence[Record]) -> Float[Array, ""]:
        """Return the exact log evidence."""
        model = unwrap(self)
        kernels, data = model.linear(records)
        return exact_log_evidence(kernels, data, model.rule, model.shared(records))

    def condition(self, records: Sequence[Record]) -> Posterior:
        """Condition the latent field on the records."""
        model = unwrap(self)
        kernels, data = model.linear(records)
        return exact_posterior(kernels, data, model.rule, model.shared(records))

    def linear(self, records: Sequence[Record]) -> tuple[Kernels, Sources]:
        """Return the GP and what the sources see of it, with the noise each value has alone."""
        kernels, sources = self.field.linear(records)
        return kernels, tuple(
            s._replace(noise=jnp.zeros_like(s.noise)) if process[0] in self.shares else s
            for process, s in zip(self.processes, sources, strict=True)
        )

    def shared(self, records: Sequence[Record]) -> Float[Array, "n n"]:
        """Return the covariance of the errors that sources share."""
        model, total = unwrap(self), jnp.zeros(())
        count = sum(len(record) for record in records)
        names = [source for source, _ in model.processes]
        data = model.field.linear(records)[1]
        for fine, share in model.shares.items():
            if share.shape[0] != count:
                raise ValueError(
                    f"Dependent: the model was built for {share.shape[0]} values and is given"
                    f" {count}. Fit all the data at once."
                )
            seen = data[names.index(fine)].noise
            unseen = jnp.broadcast_to(model._usual(fine), (share.shape[1] - len(seen),))
            scaled = jnp.asarray(share) * jnp.sqrt(jnp.concatenate([seen, unseen]))[None, :]
            total = total + scaled @ scaled.T
        return total

    def tempering(self, records: Sequence[Record]) -> Float[Array, ""]:
        """Return zero: all weights are one."""
        return jnp.zeros(())

    def noise_covariance(self, records: Sequence[Record]) -> Float[Array, "n n"]:
        """Return the covariance of all errors given the field."""
        own = jnp.concatenate([s.noise for s in self.linear(records)[1]])
        return self.shared(records) + jnp.diag(own)

    def moments(
        self, state: Posterior, support: Support, task: str, source: str | None
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, " n"]]:
        """Return mean and variance of L f."""
        return self.field.moments(state, support, task, source)

    def joint(
        self, state: Posterior, support: Support, task: str, source: str | None
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, "n n"]]:
        """Return mean and joint covariance of L f."""
        return self.field.joint(state, support, task, source)

    def observation_noise(self, process: Process) -> float:
        """Return the noise variance of a new observation.

        For a source that averages another it is its own noise and the averaged errors of the
        other, for a region with as many nodes as those observed, on average.
        """
        own = self.field.observation_noise(process)
        fine = dict(self.averages).get(process[0])
        if fine is None:
            return own
        error = self.field.observation_noise((fine, process[1]))
        return own + error * float(self.left[process[0]])

    def named(self) -> dict[str, Parameter]:
        """Return the parameters by name."""
        return self.field.named()

    def report(self, scaling: Scaling) -> dict[str, np.ndarray]:
        """Return the parameters' values by name, in the user's units."""
        return self.field.report(scaling)

    def values(self, scaling: Scaling) -> dict[str, Array]:
        """Return what `report` does, inside transformations of JAX too."""
        return self.field.values(scaling)

    def account(self, state: Posterior) -> str:
        """Say how the posterior is held, and which sources share errors."""
        pairs = (f"{coarse} averages the values of {fine}" for coarse, fine in self.averages)
        return "; ".join([self.field.account(state), *pairs]) + ", errors included"

    def _usual(self, fine: str) -> Float[AnyArray, ""]:
        known, learned = self.field.known_noise, self.field.noise_variance
        return jnp.asarray(known[fine] if fine in known else learned[fine])


@dataclasses.dataclass(frozen=True)
class Dependent:
    """MR-GP for sources that report averages of the values of another source, errors included.

    `averages` maps each such source to the one it averages: `{"coarse": "fine"}`. A place has one
    error, whichever values it enters, and each average adds noise of its own. The fine source has
    points, the coarse one nodes or points; places the fine source did not observe have errors of
    the same variance. The model is exact.

    >>> Dependent(MRGP(mean="zero"), averages={"daily": "hourly"}).averages
    {'daily': 'hourly'}
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

    def view(self, data: Dataset) -> Dataset:
        """Return the data as they are."""
        return data

    @float64
    def build(self, data: Dataset, key: Any = 0) -> DependentGP:
        """Make the model for a dataset, and find the places that sources share."""
        for name in (name for pair in self.averages.items() for name in pair):
            if name not in data.sources:
                raise ValueError(
                    f"Dependent: averages= names {name!r}, which is no source; the sources are"
                    f" {data.sources}."
                )
        field = dataclasses.replace(self.model, method="exact").build(data, key)
        self._check_size(data, field)
        seen = {o.name: o.dropna() for o in data}
        for coarse, fine in self.averages.items():
            _check_supports(seen[coarse], seen[fine])
        scaling = Scaling.of(data)
        shares, left = {}, {}
        for fine in dict.fromkeys(self.averages.values()):
            takers = [name for name in data.sources if self.averages.get(name) == fine]
            matrices = _shares(seen[fine], [seen[name] for name in takers], scaling.centre)
            left |= {n: np.asarray((m**2).sum(1).mean()) for n, m in matrices.items() if n != fine}
            columns = matrices[fine].shape[1]
            shares[fine] = np.concatenate(
                [matrices.get(n, np.zeros((len(o), columns))) for n, o in seen.items()]
            )
        return DependentGP(field, shares, left, tuple(self.averages.items()))

    def _check_size(self, data: Dataset, field: SingleGP) -> None:
        if self.model.method == "auto" and not exact_is_cheap(
            data, unwrap(field.kernel), field.rule
        ):
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
