"""One latent GP seen by every source: MR-GP (theory 2)."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, get_args

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mrgp._types import AnyArray, float64
from mrgp.data import Dataset, Record, Scaling, as_seed
from mrgp.gp import (
    Inducing,
    LinearGaussian,
    Moments,
    Natural,
    Posterior,
    Whitened,
    collapsed_log_evidence,
    collapsed_posterior,
    exact_log_evidence,
    exact_posterior,
    expected_log_likelihood,
    information,
    needs_nodes,
    start_locations,
    whiteners,
)
from mrgp.kernels import Binding, Kernel, Matern32, kernel_parameters
from mrgp.likelihoods import tempering_constant
from mrgp.models.recipe import Process
from mrgp.models.tasks import start_noise, typical_total
from mrgp.parameters import (
    LogNormal,
    Parameter,
    fixed,
    positive,
    real,
    unwrap,
)
from mrgp.supports import DEFAULT_RULE, Geometry, Rule, Support

Method = Literal["auto", "exact", "collapsed", "svgp"]
Bias = Literal["none", "offset", "affine"]
Mean = Literal["zero", "constant", "linear"]

EXACT_LIMIT = 1500
COLLAPSED_LIMIT = 20_000
EXACT_NODE_PAIRS = 9_000_000
LOOSE = 0.05
RATIO_LOG_SD = 1.0


class SingleGP(eqx.Module):
    """y = c + r L f + noise for each source, with one latent field f = mean + GP.

    The target's c is zero and its r one. An offset acts through L 1, so that c is a bias of the
    field in the field's units, for means and totals alike. `q` is there when the bound is to be
    the uncollapsed one.
    """

    kernel: Kernel
    mean: Any
    offset: dict[str, Any]
    ratio: dict[str, Any]
    noise_variance: dict[str, Any]
    locations: Any
    known_noise: dict[str, Float[AnyArray, ""]]
    q: Any
    processes: tuple[Process, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    target: str = eqx.field(static=True)
    rule: Rule = eqx.field(static=True)

    def log_evidence(self, records: Sequence[Record]) -> Float[Array, ""]:
        """Return the exact log evidence, or a bound on it where there are inducing inputs."""
        model = unwrap(self)
        if model.q is not None:
            return self.expected_log_likelihood(model.q, records) - model.q.divergence
        data = model._linear_gaussian(records)
        constant = jnp.sum(
            jnp.stack([tempering_constant(*model._noise(i, r)) for i, r in enumerate(records)])
        )
        if model.locations is None:
            return exact_log_evidence((model.kernel,), data, model.rule) + constant
        return collapsed_log_evidence((model.kernel,), data, model.locations, model.rule) + constant

    def expected_log_likelihood(
        self, q: Whitened | Moments, records: Sequence[Record]
    ) -> Float[Array, ""]:
        """Return E_q[log p(records)], weighted, for q of the whitened inducing variables."""
        model = unwrap(self)
        whiten = whiteners((model.kernel,), model.locations)
        total = jnp.zeros(())
        for i, record in enumerate(records):
            noise, weight = model._noise(i, record)
            data = model._source(i, record, noise)
            total += expected_log_likelihood(
                (model.kernel,), data, weight, model.locations, whiten, q, model.rule
            )
        return total

    def with_q(self) -> "SingleGP":
        """Return the model with a q(u) to train, the prior's where it has none."""
        if self.q is not None:
            return self
        return dataclasses.replace(self, q=_prior_q(self.locations.raw.shape[0]))

    def optimal_q(self, records: Sequence[Record]) -> Natural:
        """Return the best q of the whitened inducing variables: one pass over the records."""
        model = unwrap(self)
        whiten = whiteners((model.kernel,), model.locations)
        sources = model._linear_gaussian(records)
        known = information((model.kernel,), sources, model.locations, whiten, model.rule)
        return Natural.optimal(known.score, known.precision)

    @property
    def natural_rate(self) -> float:
        """The size of the natural-gradient step that finds the best q on all data."""
        return 1.0

    def natural_q(self) -> Natural:
        """Return the q from which natural gradients start: the prior."""
        return Natural.standard(self.q.mean.raw.shape[0])

    def with_natural(self, q: Natural) -> "SingleGP":
        """Return the model itself: its posterior comes from the data, at the best q."""
        return self

    def full_bound(self, q: Natural, records: Sequence[Record]) -> Float[Array, ""]:
        """Return the bound at the best q, which is the collapsed one."""
        return eqx.tree_at(lambda m: m.q, self, None, is_leaf=lambda x: x is None).log_evidence(
            records
        )

    def condition(self, records: Sequence[Record]) -> Posterior:
        """Condition the latent field on the records."""
        model = unwrap(self)
        data = model._linear_gaussian(records)
        if model.locations is None:
            return exact_posterior((model.kernel,), data, model.rule)
        return collapsed_posterior((model.kernel,), data, model.locations, model.rule)

    def moments(
        self, state: Posterior, support: Support, task: str, source: str | None
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, " n"]]:
        """Return mean and variance of L f, or of c + r L f for a source."""
        model = unwrap(self)
        ratio = model._ratio(source)[None]
        mean, variance = state.moments((model.kernel,), ratio, support, model.rule)
        return model._prior_mean(support, source) + mean, variance

    def joint(
        self, state: Posterior, support: Support, task: str, source: str | None
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, "n n"]]:
        """Return mean and joint covariance of L f, or of c + r L f for a source."""
        model = unwrap(self)
        ratio = model._ratio(source)[None]
        mean, covariance = state.joint((model.kernel,), ratio, support, model.rule)
        return model._prior_mean(support, source) + mean, covariance

    def observation_noise(self, process: Process) -> float:
        """Return the noise variance of a new observation: learned, or the mean of those given."""
        source = process[0]
        if source in self.known_noise:
            return float(self.known_noise[source])
        return float(self.noise_variance[source].value)

    def named(self) -> dict[str, Parameter]:
        """Return the parameters by name; kernels inside others go by their class and inputs."""
        found = kernel_parameters(self.kernel, self.inputs)
        for field in ("noise_variance", "offset", "ratio"):
            found |= {f"{field}[{k}]": v for k, v in getattr(self, field).items()}
        return found

    def report(self, scaling: Scaling) -> dict[str, np.ndarray]:
        """Return the parameters' values by name, in the user's units."""
        found = {name: np.asarray(parameter.value) for name, parameter in self.named().items()}
        level = scaling.offset[0]
        for source in self.offset:
            # Values are centred before c + r L f: undoing that moves (1 - r) levels into c.
            ratio = found.get(f"ratio[{source}]", 1.0)
            found[f"offset[{source}]"] = np.asarray(
                found[f"offset[{source}]"] + (1 - ratio) * level
            )
        constant, slopes = np.split(np.asarray(self.mean.value), [1])
        if len(slopes):
            level = level - slopes @ scaling.centre
            found["mean.slope"] = slopes
        return found | {"mean.constant": np.asarray(level + constant.sum())}

    def account(self, state: Posterior) -> str:
        """Say how the posterior is held, and how well."""
        if self.locations is None:
            return "exact: the training data are kept in the fit, and saved with it"
        share = float(state.unexplained)
        advice = "; more would help" if share > LOOSE else ""
        return (
            f"sparse: {self.locations.raw.shape[0]} inducing inputs, which miss variance worth"
            f" {share:.1%} of the noise{advice}"
        )

    def _linear_gaussian(self, records: Sequence[Record]) -> tuple[LinearGaussian, ...]:
        """Return the sources with weights folded into the noise (theory 2.2)."""
        sources = []
        for i, record in enumerate(records):
            noise, weight = self._noise(i, record)
            sources.append(self._source(i, record, noise / weight))
        return tuple(sources)

    def _source(self, process: int, record: Record, noise: Float[Array, " n"]) -> LinearGaussian:
        source, _ = self.processes[process]
        residual = jnp.asarray(record.y) - self._prior_mean(record.support, source)
        ratio = self._ratio(source)[None]
        return LinearGaussian(record.support, ratio, residual, noise, record.shapes)

    def _noise(self, process: int, record: Record) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        given = record.noise_variance
        noise = self.noise_variance[self.processes[process][0]] if given is None else given
        shape = record.y.shape
        return (
            jnp.broadcast_to(jnp.asarray(noise), shape),
            jnp.broadcast_to(jnp.asarray(record.weight), shape),
        )

    def _prior_mean(self, support: Support, source: str | None) -> Float[Array, " n"]:
        """Return c L1 + r L mu."""
        total = jnp.asarray(support.total)
        basis = jnp.concatenate([total[:, None], jnp.asarray(support.moment)], 1)
        count = self.mean.shape[0]
        mean = basis[:, :count] @ self.mean
        offset = self.offset.get(source, 0.0) if source is not None else 0.0
        return offset * total + self._ratio(source) * mean

    def _ratio(self, source: str | None) -> Float[AnyArray, ""]:
        return self.ratio[source] if source in self.ratio else jnp.ones(())


@dataclasses.dataclass(frozen=True)
class MRGP:
    """The multi-resolution GP: one latent field observed by every source through its own support.

    `method` is "exact", "collapsed" (sparse, by inducing inputs) or "svgp" (sparse, trained on
    minibatches, for data of any size); "auto" takes them in this order as the data grow, and
    leaves exact out where `inducing` is given. `bias` lets every source but the `target` (default:
    the first) report c + L f ("offset") or c + r L f ("affine"). `priors=False` switches the
    default priors off.

    >>> MRGP(bias="affine").bias
    'affine'
    """

    kernel: Any = None
    inducing: Any = None
    method: str = "auto"
    bias: str = "none"
    mean: str = "constant"
    target: str | None = None
    priors: bool = True
    quadrature: Any = DEFAULT_RULE

    def __post_init__(self) -> None:
        for name, choices in (("method", Method), ("bias", Bias), ("mean", Mean)):
            if getattr(self, name) not in get_args(choices):
                raise ValueError(
                    f"MRGP: {name}= is one of {get_args(choices)}; got {getattr(self, name)!r}."
                )
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise TypeError(
                f"MRGP: kernel= takes a kernel such as mrgp.RBF(); got {self.kernel!r}."
            )
        Inducing.parse(self.inducing)
        if self.method == "exact" and self.inducing is not None:
            raise ValueError('MRGP: inducing= has no use with method="exact"; leave one out.')
        if not isinstance(self.quadrature, Rule):
            raise TypeError(
                f"MRGP: quadrature= takes a rule such as mrgp.GaussLegendre(5); got"
                f" {self.quadrature!r}."
            )

    def view(self, data: Dataset) -> Dataset:
        """Return the data as they are."""
        return data

    @float64
    def build(self, data: Dataset, key: Any = 0) -> SingleGP:
        """Make the model for a dataset of one task, with starting values and priors."""
        if len(data.tasks) != 1:
            raise ValueError(
                f"MRGP models one task, and the data have {data.tasks}. Choose one with"
                " data.select(task=...)."
            )
        target = self._target(data)
        scaling = Scaling.of(data)
        supports = tuple(o.dropna().support.shift(scaling.centre) for o in data)
        geometry = Geometry.of(data.supports)
        spread = float(scaling.scale[0])
        kernel = Matern32(product=True) if self.kernel is None else self.kernel
        bound = kernel.bind(Binding(geometry, spread**2, self.priors))
        others = [source for source in data.sources if source != target]
        locations = self._place(data, supports, scaling, bound, key)
        return SingleGP(
            kernel=bound,
            mean=self._start_mean(geometry, spread, float(scaling.offset[0])),
            offset={s: real(0.0, scale=spread) for s in others if self.bias != "none"},
            ratio={s: self._start_ratio() for s in others if self.bias == "affine"},
            noise_variance={
                o.name: start_noise(spread * typical_total(o), self.priors)
                for o in data
                if o.noise_variance is None
            },
            known_noise={
                o.name: np.asarray(o.noise_variance[o.observed].mean())
                for o in data
                if o.noise_variance is not None
            },
            locations=locations,
            q=self._start_q(data, locations),
            processes=data.processes,
            inputs=data.inputs,
            target=target,
            rule=self.quadrature,
        )

    def _target(self, data: Dataset) -> str:
        if self.target is None:
            return data.sources[0]
        if self.target not in data.sources:
            raise ValueError(
                f"MRGP: target={self.target!r} is no source; the sources are {data.sources}."
            )
        return self.target

    def _start_mean(self, geometry: Geometry, spread: float, level: float) -> Parameter:
        if self.mean == "zero":
            # Values are centred at their level: a zero mean lies that much below.
            return fixed(np.array([-level]))
        scales = np.concatenate([[spread], spread / geometry.extent])
        count = 1 if self.mean == "constant" else len(scales)
        return real(np.zeros(count), scale=scales[:count])

    def _start_ratio(self) -> Parameter:
        prior = LogNormal(np.ones(()), np.asarray(RATIO_LOG_SD)) if self.priors else None
        return positive(1.0, prior)

    def _start_q(self, data: Dataset, locations: Parameter | None) -> Whitened | None:
        count = sum(int(o.observed.sum()) for o in data)
        large = self.method == "auto" and count > COLLAPSED_LIMIT
        if locations is None or not (self.method == "svgp" or large):
            return None
        return _prior_q(locations.raw.shape[0])

    def _place(
        self,
        data: Dataset,
        supports: tuple[Support, ...],
        scaling: Scaling,
        kernel: Kernel,
        key: Any,
    ) -> Parameter | None:
        small = self.inducing is None and exact_is_cheap(data, unwrap(kernel), self.quadrature)
        if self.method == "exact" or (self.method == "auto" and small):
            return None
        inducing = Inducing.parse(self.inducing)
        return start_locations(inducing, supports, scaling.centre, unwrap(kernel), as_seed(key))


def _prior_q(number: int) -> Whitened:
    return Whitened(real(np.zeros(number)), real(np.eye(number)))


def exact_is_cheap(data: Dataset, kernel: Kernel, rule: Rule) -> bool:
    """Tell whether a dense covariance of all values is affordable."""
    seen = data.dropna()
    if sum(len(o) for o in seen) > EXACT_LIMIT:
        return False
    nodes = 0
    for o in seen:
        support = o.support.quadrature(rule) if needs_nodes(kernel, o.support) else o.support
        nodes += len(o) * support.nodes_per_region
    return nodes**2 <= EXACT_NODE_PAIRS
