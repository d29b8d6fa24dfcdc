"""Composite weights: how much less dependent sources say than their product (theory 4)."""

import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float

from mrgp._types import float64
from mrgp.data import Dataset
from mrgp.inference import Optimum, Problem, Progress, Status, as_progress, check_recipe
from mrgp.inference.each_alone import composite_optimum
from mrgp.models import Recipe
from mrgp.supports import Clusters
from mrgp.weighting.clustering import cluster_rows
from mrgp.weighting.hyperscores import kernel_sandwich
from mrgp.weighting.sandwich import Sandwich
from mrgp.weighting.smoothed import Smoothed, smoothed_by, source_rows

Estimator = Literal["ratio", "ribatet", "lyddon"]
Parameters = Literal["function", "kernel"]

LEAST = 0.05
FEW_CLUSTERS = 10
CLOSE_TO_ONE = 0.995
UNCERTAIN = 0.2
NOTHING = 1e-10


@dataclasses.dataclass(frozen=True, eq=False)
class CompositeWeights(Mapping):
    """Composite weights by source (or by (source, task)), with an account of how they came about.

    `information` and `variability` are H and J of the score, `freedom` the effective degrees of
    freedom, `clusters` the groups of observations (`joint` of them with several sources),
    `standard_errors` those of the weights over clusters, `uncapped` the weights before they were
    limited, and `cautions` what to mind.

    >>> import mrgp
    >>> x = np.linspace(0.0, 9.0, 40)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> twice = [mrgp.Observations(mrgp.points(x), y, name=name) for name in ("one", "copy")]
    >>> weights = mrgp.composite_weights(mrgp.MRGP(), mrgp.Dataset(twice))
    >>> round(weights["copy"], 3), weights.joint
    (0.5, 40)
    """

    values_: dict[Any, float]
    uncapped: dict[Any, float]
    standard_errors: dict[Any, float]
    rule: str
    parameters: str
    information: Float[np.ndarray, "m m"]
    variability: Float[np.ndarray, "m m"]
    freedom: float
    clusters: Clusters
    joint: int
    leverage: float
    cautions: tuple[str, ...]

    def __getitem__(self, key: Any) -> float:
        return self.values_[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)

    def summary(self) -> str:
        """Tell the weights and what they rest on."""
        what = {"function": "the latent functions", "kernel": "the kernel's parameters"}
        lines = [f"Composite weights by the {self.rule} rule, scores of {what[self.parameters]}"]
        width = max(len(_label(key)) for key in self)
        for key, value in self.items():
            error, raw = self.standard_errors[key], self.uncapped[key]
            limited = f", {raw:.3f} before the limit" if abs(raw - value) > 5e-4 else ""
            known = f"standard error {error:.3f}" if np.isfinite(error) else "no standard error"
            lines.append(f"  {_label(key):<{width}}  {value:.3f} ({known}{limited})")
        sizes = self.clusters.sizes
        lines.append(
            f"  clusters: {self.clusters.count} of {sizes.min()} to {sizes.max()} observations,"
            f" {self.joint} with several sources"
        )
        lines.append(
            f"  effective degrees of freedom {self.freedom:.1f};"
            f" tr H {np.trace(self.information):.4g}, tr J {np.trace(self.variability):.4g}"
        )
        return "\n".join([*lines, *(f"  caution: {text}" for text in self.cautions)])

    def __repr__(self) -> str:
        weights = ", ".join(f"{_label(key)}: {value:.3g}" for key, value in self.items())
        return f"CompositeWeights({weights}; {self.rule}, {self.clusters.count} clusters)"


@float64
def composite_weights(
    model: Recipe,
    data: Dataset,
    rule: str = "ratio",
    parameters: str = "function",
    clusters: Any = "overlap",
    per_source: bool = False,
    cap: bool = True,
    *,
    key: Any = 0,
    progress: Any = "auto",
) -> CompositeWeights:
    """Weigh sources that share errors, so that together they claim no more than they know.

    Scores of the latent functions (or, as in the paper, of the kernel's `parameters`) are summed
    within `clusters` of overlapping observations; how much they vary beyond what independent
    sources would is what the weight takes off. "ratio" compares the sources' own scores with their
    sum; "ribatet" and "lyddon" compare the scores' variance with the information. `clusters` is
    "overlap", "observation", "source", or labels: one array for each source, in order or by name.
    `per_source=True` gives every source a weight of its own; `cap=False` allows weights above one.

    >>> import numpy as np, mrgp
    >>> x = np.linspace(0.0, 9.0, 40)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> twice = [mrgp.Observations(mrgp.points(x), y, name=name) for name in ("one", "copy")]
    >>> mrgp.composite_weights(mrgp.MRGP(), mrgp.Dataset(twice))
    CompositeWeights(one: 0.5, copy: 0.5; ratio, 40 clusters)
    """
    asked = Asked(rule, parameters, clusters, per_source, cap)
    asked.check(data)
    check_recipe(model, "auto")
    weights, _ = weigh_sources(Problem.of(model, data, key=key), asked, as_progress(progress))
    say_cautions(weights, stacklevel=3)
    return weights


class Asked(NamedTuple):
    """How sources are to be weighed: the arguments of `composite_weights`.

    >>> Asked(rule="ribatet").clusters
    'overlap'
    """

    rule: str = "ratio"
    parameters: str = "function"
    clusters: Any = "overlap"
    per_source: bool = False
    cap: bool = True

    def check(self, data: Any) -> None:
        """Refuse words that are not known, and combinations that have no meaning."""
        for name, allowed in (("rule", Estimator), ("parameters", Parameters)):
            value = getattr(self, name)
            if value not in get_args(allowed):
                raise ValueError(
                    f"composite_weights: {name}= is one of {get_args(allowed)}; got {value!r}."
                )
        if not isinstance(self.per_source, bool):
            raise TypeError(
                f"composite_weights: per_source= is True or False; got {self.per_source!r}."
            )
        if self.per_source and self.rule != "ratio":
            raise ValueError(
                f'composite_weights: per_source=True goes with rule="ratio"; rule={self.rule!r}'
                " gives one weight for all sources."
            )
        if not isinstance(data, Dataset):
            raise TypeError(f"composite_weights takes a Dataset; got {type(data).__name__}.")


def weigh_sources(
    problem: Problem, asked: Asked, progress: Progress
) -> tuple[CompositeWeights, Optimum]:
    """Return the composite weights, and the parameters of each source alone they come from.

    >>> import jax, mrgp
    >>> from mrgp.inference import Silent
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> problem = Problem.of(mrgp.MRGP(), mrgp.Dataset([seen]))
    >>> with jax.enable_x64(True):
    ...     weights, alone = weigh_sources(problem, Asked(), Silent())
    >>> alone.status.code
    'converged'
    """
    groups = cluster_rows(problem.data, asked.clusters)
    optimum = alone_optimum(problem, progress, "composite_weights")
    groups, found, leverage = _scores(optimum.model, problem, groups, asked)
    raw, errors = _weigh(found, asked.rule, asked.per_source)
    values = _limited(raw, asked.per_source, asked.cap)
    keys = _keys(problem.data)
    weights = CompositeWeights(
        values_=dict(zip(keys, values.tolist(), strict=True)),
        uncapped=dict(zip(keys, raw.tolist(), strict=True)),
        standard_errors=dict(zip(keys, errors.tolist(), strict=True)),
        rule=asked.rule,
        parameters=asked.parameters,
        information=found.information,
        variability=found.variability,
        freedom=found.dimension,
        clusters=groups,
        joint=_joint(groups),
        leverage=leverage,
        cautions=(),
    )
    cautions = _cautions(weights, optimum.status)
    return dataclasses.replace(weights, cautions=cautions), optimum


def say_cautions(weights: Any, stacklevel: int) -> None:
    """Warn of what to mind about weights; without cautions say nothing.

    >>> import types
    >>> say_cautions(types.SimpleNamespace(cautions=()), stacklevel=1)
    """
    if weights.cautions:
        text = "; ".join(weights.cautions)
        warnings.warn(f"composite_weights: {text}.", stacklevel=stacklevel + 1)


def alone_optimum(problem: Problem, progress: Progress, where: str) -> Optimum:
    """Return the parameters of each source alone, or say that they could not be found.

    >>> import jax, mrgp
    >>> from mrgp.inference import Silent
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> problem = Problem.of(mrgp.MRGP(), mrgp.Dataset([seen]))
    >>> with jax.enable_x64(True):
    ...     alone_optimum(problem, Silent(), "fit").status.code
    'converged'
    """
    optimum = composite_optimum(problem, progress)
    if not optimum.status.ok:
        raise ValueError(f"{where}: the fit of each source alone failed: {optimum.status}.")
    return optimum


def _joint(clusters: Clusters) -> int:
    """Return in how many clusters several sources observe."""
    sources = np.bincount(np.concatenate([np.unique(labels) for labels in clusters.labels]))
    return int(np.sum(sources > 1))


def _limited(raw: Float[np.ndarray, " a"], per_source: bool, cap: bool) -> Float[np.ndarray, " a"]:
    """Limit weights; one below zero is of a source that opposes the others, and repeats none."""
    values = np.where(raw > 0, raw, 1.0)
    if per_source:
        values = np.maximum(values, LEAST)
    return np.minimum(values, 1.0) if cap else values


def _keys(data: Dataset) -> list[Any]:
    """Return the name of every process: its source, or (source, task) where that says more."""
    names = [source for source, _ in data.processes]
    return [s if names.count(s) == 1 else (s, t) for s, t in data.processes]


def _scores(
    model: Any, problem: Problem, groups: Clusters, asked: Asked
) -> tuple[Clusters, Sandwich, float]:
    records = problem.records
    if asked.parameters == "kernel":
        rows = np.concatenate(groups.labels)
        return groups, kernel_sandwich(model, records, source_rows(records), rows), 0.0
    if asked.rule == "lyddon":
        # It inverts a variance, for which directions of the whole field are to be known.
        smoothed = Smoothed.of(model, records, groups)
    else:
        groups, smoothed = smoothed_by(model, records, problem.data, asked.clusters, groups)
    return groups, smoothed.sandwich(), smoothed.leverage


def _weigh(
    found: Sandwich, rule: str, per_source: bool
) -> tuple[Float[np.ndarray, " a"], Float[np.ndarray, " a"]]:
    """Return the weight of every source, and its standard error over clusters."""
    number = found.own.shape[1]
    total = found.shared.sum(1)
    if np.trace(found.variability) <= NOTHING * found.dimension:
        return np.ones(number), np.full(number, np.nan)
    if rule == "lyddon":
        weight, error = _lyddon(found)
    elif rule == "ribatet":
        weight = found.dimension / total.sum()
        error = _ratio_error(np.full(len(total), found.dimension / len(total)), total)
    elif per_source:
        pairs = zip(found.own.T, found.shared.T, strict=True)
        errors = [_ratio_error(own, shared) for own, shared in pairs]
        return found.own.sum(0) / found.shared.sum(0), np.array(errors)
    else:
        own = found.own.sum(1)
        weight, error = own.sum() / total.sum(), _ratio_error(own, total)
    return np.full(number, weight), np.full(number, error)


def _ratio_error(top: Float[np.ndarray, " k"], bottom: Float[np.ndarray, " k"]) -> float:
    """Return the standard error of sum(top) / sum(bottom) over clusters."""
    k = len(top)
    if k < 2 or bottom.sum() == 0:
        return float("nan")
    left = top - top.sum() / bottom.sum() * bottom
    return float(np.sqrt(k / (k - 1) * np.sum(left**2)) / abs(bottom.sum()))


def _lyddon(found: Sandwich) -> tuple[float, float]:
    """Return tr(H J^-1 H) / tr H along the leading directions, and its standard error.

    The inverse of a variance estimated from k clusters in r directions is too large by
    k / (k - r - 1) on average; that is taken off.
    """
    scores, strength = found.leading, found.strength
    k, r = scores.shape
    inverse = np.linalg.pinv(scores.T @ scores)
    shrink = max(k - r - 1, 1) / k
    product = strength[:, None] * inverse * strength[None, :]
    weight = shrink * np.trace(product) / strength.sum()
    influence = shrink * np.sum((scores @ inverse * strength[None, :]) ** 2, 1) / strength.sum()
    error = np.sqrt(k / max(k - 1, 1) * np.sum((influence - influence.mean()) ** 2))
    return float(weight), float(error)


def _cautions(weights: CompositeWeights, status: Status) -> tuple[str, ...]:
    found = []
    if status.code != "converged":
        found.append(f"the fit of each source alone ended early ({status.code})")
    if len(weights) == 1:
        found.append("there is one source, and so nothing it could repeat")
    elif weights.joint == 0:
        found.append("no cluster holds several sources, so that no dependence between them is seen")
    if np.trace(weights.variability) <= NOTHING * weights.freedom:
        found.append("the residuals are all zero, and say nothing of dependence")
    telling = weights.joint or weights.clusters.count
    if telling < FEW_CLUSTERS:
        several = " with several sources" if weights.joint else ""
        found.append(
            f"only {telling} cluster{'' if telling == 1 else 's'}{several}, fewer than"
            f" {FEW_CLUSTERS}: the weight is unreliable. Give finer labels with clusters="
        )
    else:
        found += [
            f"the standard error of the weight of {_label(key)} is large,"
            f" {weights.standard_errors[key]:.2f}"
            for key in list(weights)[: None if len(set(weights.values())) > 1 else 1]
            if weights.standard_errors[key] > UNCERTAIN * abs(weights.uncapped[key])
        ]
    if weights.leverage > CLOSE_TO_ONE and weights.rule != "ratio":
        found.append(
            f"a cluster explains {weights.leverage:.1%} of itself, which biases the weight upward;"
            ' use rule="ratio", or smaller clusters'
        )
    return tuple(found)


def _label(key: Any) -> str:
    return key if isinstance(key, str) else ", ".join(key)
