"""The recipe of the multi-resolution GP regression network, MR-GPRN (theory 3)."""

import dataclasses
from typing import Any, Literal

import equinox as eqx
import numpy as np

from mrgp._compiled import Compiled
from mrgp._types import float64, to_numpy
from mrgp.data import Dataset, Frame, Scaling, as_seed
from mrgp.gp import Collapsed, EntropyBound, Exact, Inducing, Moments, Solver, start_locations
from mrgp.kernels import (
    RBF,
    Binding,
    Constant,
    Kernel,
    Matern32,
    Sum,
    has_white,
    single_kernels,
)
from mrgp.links import Link
from mrgp.models.along import along_time
from mrgp.models.answers import as_arrays
from mrgp.models.approximate import refuse_likelihoods
from mrgp.models.arguments import check_choices, check_kernels, check_rule, check_whole
from mrgp.models.contract import Fitted, PlainRecipe, Sketch
from mrgp.models.factors import Factors, prior_q, spread_q, trained_q
from mrgp.models.linear import LinearModel
from mrgp.models.linked import Linked
from mrgp.models.linking import (
    level_of,
    link_of,
    linked_locations,
    refuse_closed_form,
    start_of_field,
)
from mrgp.models.mrgp import exact_is_cheap
from mrgp.models.network import Network, Schedule
from mrgp.models.noise import Diagonal
from mrgp.models.readouts import Levels, Mixed
from mrgp.parameters import (
    LogNormal,
    Normal,
    Parameter,
    fixed,
    positive,
    real,
    stretched,
    unwrap,
)
from mrgp.supports import DEFAULT_RULE, Geometry

Mean = Literal["zero", "constant"]
Method = Literal["auto", "exact", "markov", "collapsed"]

MOST_LATENTS = 3
FEW_F, MANY_F = 150, 200
FEW_W, MANY_W = 30, 60
VARIATION = 0.1
VARIATION_LOG_SD = 1.5
VARIATION_EXTENT = 0.3
VARIATION_EXTENT_LOG_SD = 0.7
LENGTHSCALE_STEP = 3.0
START_VARIANCE = 1e-2


@dataclasses.dataclass(frozen=True, repr=False)
class MRGPRN(PlainRecipe):
    """The multi-resolution GP regression network: tasks that share latent functions.

    Task p is sum_q W_pq f_q, where weights and latent functions are all GPs, so that the mixing of
    tasks may change over the inputs; every source sees its task through its own support.
    `kernel_w="constant"` makes the weights constants, the linear coregionalised model, which is
    solved by `method`: "exact", "markov" (exact along time), "collapsed" (sparse), or the one of
    these that suits the data ("auto"), as in `MRGP`. `positive=True` mixes with exp(W).
    Each kernel is one for all, or a list with one for each latent function; the default weights are
    a constant plus a slow variation. The
    posterior is a mixture of `components` Gaussians, its entropy bounded after Bhattacharyya, or
    as in the paper (`entropy="paper"`); each is a product over latent functions and weights, or,
    with `coupled=True`, keeps the covariances among latent functions and among the weights of a
    task. `schedule="noise-last"` holds the noises until the rest is fitted. `link` is as in `MRGP`,
    for constant weights: tasks are then g(sum_q W_pq f_q), and regions average that.

    >>> MRGPRN(latents=2).positive
    False
    """

    latents: Any = None
    kernel_f: Any = None
    kernel_w: Any = None
    positive: bool = False
    components: Any = 1
    inducing_f: Any = None
    inducing_w: Any = None
    coupled: bool = True
    mean: str = "constant"
    entropy: Any = "bhattacharyya"
    schedule: Any = "joint"
    method: str = "auto"
    priors: bool = True
    quadrature: Any = DEFAULT_RULE
    link: str = "auto"

    def __post_init__(self) -> None:
        check_choices(self, mean=Mean, method=Method, entropy=EntropyBound, schedule=Schedule)
        check_choices(self, link=Literal["auto", Link])
        if self.latents is not None:
            check_whole(self, "latents")
        check_whole(self, "components")
        for name in ("positive", "coupled", "priors"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"MRGPRN: {name}= is True or False; got {getattr(self, name)!r}.")
        self._check_kernels("kernel_f")
        if isinstance(self.kernel_w, str):
            self._check_constant()
        else:
            self._check_kernels("kernel_w")
            self._check_method()
        Inducing.parse(self.inducing_f)
        Inducing.parse(self.inducing_w)
        check_rule(self)

    def _check_kernels(self, name: str) -> None:
        given = getattr(self, name)
        constant = ", or constant" if name == "kernel_w" else ""
        or_else = f", or a list of one for each latent function{constant}"
        if any(has_white(kernel) for kernel in check_kernels(self, name, or_else)):
            raise ValueError(
                f"MRGPRN: {name}= may not contain White, which has no value inside a region."
                " Every (source, task) has a noise of its own."
            )
        if isinstance(given, list | tuple) and len(given) != self.latents:
            raise ValueError(
                f"MRGPRN: {name}= has {len(given)} kernels for latents={self.latents}; give one for"
                " each latent function."
            )

    def _check_constant(self) -> None:
        if self.kernel_w != "constant":
            raise ValueError(
                f'MRGPRN: kernel_w= is a kernel, a list of kernels, or "constant"; got'
                f" {self.kernel_w!r}."
            )
        if self.method == "exact" and self.inducing_f is not None:
            raise ValueError('MRGPRN: inducing_f= has no use with method="exact"; leave one out.')
        given = [name for name, usual in _of_networks().items() if getattr(self, name) != usual]
        if given:
            raise ValueError(
                f'MRGPRN: kernel_w="constant" has a Gaussian posterior, in which {given[0]}= has'
                " no meaning; leave it out."
            )

    def _check_method(self) -> None:
        if self.method != "auto":
            raise ValueError(
                f'MRGPRN: method="{self.method}" is for constant weights, kernel_w="constant"; a'
                " network of varying weights always has inducing inputs. Leave it out."
            )

    @property
    def fitted(self) -> Fitted:
        """A network's posterior is found block by block, that of constant weights at once."""
        return "whole" if self.kernel_w == "constant" else "blocks"

    def sketch(self, data: Dataset) -> Sketch:
        """Return the latent functions, and how weights mix them."""
        constant, latents = self.kernel_w == "constant", self.latents_of(data)
        return Sketch("network", latents=latents, constant=constant, positive=self.positive)

    def latents_of(self, data: Dataset) -> int:
        """Return how many latent functions the tasks of a dataset share."""
        return self.latents or min(len(data.tasks), MOST_LATENTS)

    def frame(self, data: Dataset) -> Frame:
        """Centre inputs, and values where tasks have no link."""
        return Frame.of(data, shifted=self._link(data) == "identity")

    def _link(self, data: Dataset) -> Link:
        """Return the link of the tasks; where weights vary, there is none."""
        if self.kernel_w == "constant":
            link = link_of(self.link, data)
            if link == "identity":
                refuse_likelihoods(data, "MRGPRN")
            return link
        refuse_likelihoods(data, "MRGPRN")
        if self.link not in ("auto", "identity"):
            raise ValueError(
                f"MRGPRN: link={self.link!r} is for constant weights; give kernel_w="
                '"constant", or positive=True for weights that are.'
            )
        return "identity"

    @float64
    def build(
        self, data: Dataset, key: Any = 0, frame: Frame | None = None
    ) -> Network | LinearModel | Linked:
        """Make the model for a dataset, with starting values and priors."""
        link, frame = self._link(data), frame or self.frame(data)
        if link != "identity":
            return self._linked(data, frame, link, key)
        linear = self._linear(data, frame, as_seed(key))
        if self.kernel_w == "constant":
            return linear
        return self._network(data, linear, frame, as_seed(key))

    def _linked(self, data: Dataset, frame: Frame, link: Link, key: Any) -> Linked:
        """Make the model of constant weights behind a link."""
        refuse_closed_form(self.method, link, "MRGPRN")
        latents = self.latents_of(data)
        kernels = self._kernels_f(latents, frame.geometry)
        started = [start_of_field(link, level_of(data.select(task=t))) for t in data.tasks]
        mean, spread = (np.array(part) for part in zip(*started, strict=True))
        mean = fixed(np.zeros(len(mean))) if self.mean == "zero" else real(mean, scale=spread)
        every = self.quadrature if self.method == "exact" else None
        return Linked(
            kernels=kernels,
            locations=linked_locations(
                self.inducing_f, data, frame.scaling, unwrap(kernels[0]), key, every
            ),
            readout=Mixed(
                self._start_weights(len(data.tasks), latents), Levels(mean, spread, data.tasks)
            ),
            noise=Diagonal.of(data, frame.scaling, self.priors),
            link=link,
            likelihoods=tuple(o.likelihood for o in data),
            processes=data.processes,
            inputs=data.inputs,
            rule=self.quadrature,
        )

    def _linear(self, data: Dataset, frame: Frame, seed: int) -> LinearModel:
        latents = self.latents_of(data)
        kernels = self._kernels_f(latents, frame.geometry)
        solver: Solver = Exact(kernels, rule=self.quadrature)
        if self.kernel_w == "constant":
            solver = self._solver(data, frame.scaling, kernels, seed)
        weights = self._start_weights(len(data.tasks), latents)
        return LinearModel(
            solver=solver,
            readout=Mixed(weights, Levels.of(frame.scaling, self.mean == "zero")),
            noise=Diagonal.of(data, frame.scaling, self.priors),
            processes=data.processes,
            inputs=data.inputs,
        )

    def _solver(
        self, data: Dataset, scaling: Scaling, kernels: tuple[Kernel, ...], seed: int
    ) -> Solver:
        """Return how constant weights are solved: as `method` says, or as suits the data."""
        free = self.method == "auto" and self.inducing_f is None
        if free or self.method == "markov":
            wanted, placed = self.method == "markov", (self.inducing_f, scaling.centre, seed)
            along = along_time(kernels, data, self.quadrature, wanted, *placed)
            if along is not None:
                return along
        cheap = free and all(exact_is_cheap(data, unwrap(k), self.quadrature) for k in kernels)
        if cheap or self.method == "exact":
            return Exact(kernels, rule=self.quadrature)
        locations = self._locate_f(data, scaling, kernels[0], seed)
        return Collapsed(kernels, locations, rule=self.quadrature)

    def _network(self, data: Dataset, linear: Any, frame: Frame, seed: int) -> Network:
        kernels = linear.solver.kernels
        latents = len(kernels)
        weights = tuple(self._kernels_w(latents, frame.geometry) for _ in data.tasks)
        locations_f = self._locate_f(data, frame.scaling, kernels[0], seed)
        usual = MANY_W if len(data.inputs) > 1 else FEW_W
        locations_w = _locate(self.inducing_w, usual, data, frame.scaling, weights[0][0], seed + 1)
        numbers = tuple(range(latents))
        groups = (numbers,) if self.coupled else tuple((q,) for q in numbers)
        sizes = locations_f.raw.shape[0], locations_w.raw.shape[0]
        network = Network(
            kernels_f=kernels,
            kernels_w=weights,
            levels=linear.readout.levels,
            noise=linear.noise,
            locations_f=locations_f,
            locations_w=locations_w,
            groups=groups,
            q=prior_q(groups, len(data.tasks), *sizes),
            processes=data.processes,
            inputs=data.inputs,
            components=int(self.components),
            positive=self.positive,
            entropy=self.entropy,
            schedule=self.schedule,
            rule=self.quadrature,
        )
        network = begin(network, linear)
        if self.components == 1:
            return network
        return network.with_q(spread_q(network.q, int(self.components), seed))

    def _locate_f(self, data: Dataset, scaling: Scaling, kernel: Kernel, seed: int) -> Parameter:
        usual = MANY_F if len(data.inputs) > 1 else FEW_F
        return _locate(self.inducing_f, usual, data, scaling, kernel, seed)

    @property
    def forerunner(self) -> "MRGPRN | None":
        """The linear coregionalised model of the same latent functions, where a fit begins."""
        if self.kernel_w == "constant":
            return None
        return dataclasses.replace(self, kernel_w="constant", **_of_networks())

    def _kernels_f(self, latents: int, geometry: Geometry) -> tuple[Kernel, ...]:
        """Bind the latent functions' kernels, of unit variance: W carries the scale.

        Copies of one kernel start at different lengthscales, lest they remain copies.
        """
        bound = []
        for q in range(latents):
            kernel = _chosen(self.kernel_f, q) or Matern32(product=True)
            # The scale of a latent function is W's; the members of a sum have shares to learn.
            frozen = not _has_sum(kernel)
            made = kernel.bind(Binding(geometry, 1.0, self.priors, frozen))
            apart = 0.0 if isinstance(self.kernel_f, list | tuple) else (latents - 1) / 2 - q
            bound.append(_stretched(made, LENGTHSCALE_STEP**apart))
        return tuple(bound)

    def _kernels_w(self, latents: int, geometry: Geometry) -> tuple[Kernel, ...]:
        binding = Binding(geometry, 1.0, self.priors)
        usual = self._usual_weight(geometry)
        return tuple((_chosen(self.kernel_w, q) or usual).bind(binding) for q in range(latents))

    def _usual_weight(self, geometry: Geometry) -> Kernel:
        """Return a constant plus a small, slow variation."""
        scale = VARIATION_EXTENT * geometry.extent
        variance, log_sd = np.asarray(VARIATION), np.asarray(VARIATION_LOG_SD)
        if not self.priors:
            return Constant(positive(1.0)) + RBF(positive(scale), variance=positive(variance))
        spread, one = np.full(len(scale), VARIATION_EXTENT_LOG_SD), np.ones(())
        return Constant(positive(1.0, LogNormal(one, one))) + RBF(
            positive(scale, LogNormal(scale, spread)),
            variance=positive(variance, LogNormal(variance, log_sd)),
        )

    def _start_weights(self, tasks: int, latents: int) -> Parameter:
        """Start W at columns that differ: cosines over the tasks, the first one constant."""
        angle = np.pi * np.outer(np.arange(tasks) + 0.5, np.arange(latents)) / max(tasks, latents)
        start = np.cos(angle) / np.sqrt(latents)
        one = np.ones(())
        if self.positive:
            prior = LogNormal(one, one) if self.priors else None
            return positive(np.exp(0.5 * start) / np.sqrt(latents), prior)
        return real(start, prior=Normal(np.zeros(()), one) if self.priors else None)


def _of_networks() -> dict[str, Any]:
    """Return the arguments that constant weights give no meaning to, with their defaults."""
    names = ("components", "inducing_w", "coupled", "entropy", "schedule")
    return {f.name: f.default for f in dataclasses.fields(MRGPRN) if f.name in names}


def _locate(
    given: Any, usual: int, data: Dataset, scaling: Scaling, kernel: Kernel, seed: int
) -> Parameter:
    """Place inducing inputs, of a usual number where none is given."""
    inducing = Inducing.parse(given)
    if inducing.number is None:
        inducing = dataclasses.replace(inducing, number=usual)
    supports = tuple(o.dropna().support.shift(scaling.centre) for o in data)
    return start_locations(inducing, supports, scaling.centre, unwrap(kernel), seed)


def _chosen(given: Any, latent: int) -> Kernel | None:
    """Return the kernel of a latent function: one for all, its own of a list, or none given."""
    return given[latent] if isinstance(given, list | tuple) else given


def begin(network: Network, linear: Any) -> Network:
    """Start a network of one component where the linear coregionalised model ended.

    Its weights are constant; its latent functions follow from them by one sweep.

    >>> from mrgp import Observations, points
    >>> data = Dataset([Observations(points([[0.0], [1.0]]), [0.0, 2.0])])
    >>> network = MRGPRN(latents=1, kernel_w=Constant(1.0), inducing_w=1).build(data)
    >>> linear = MRGPRN(latents=1, kernel_w="constant").build(data)
    >>> linear.readout.weights.value, begin(network, linear).q.blocks.w[0][0].mean.value.round(3)
    (array([[1.]]), array([[1.]]))
    """
    network = dataclasses.replace(
        network,
        kernels_f=linear.solver.kernels,
        levels=linear.readout.levels,
        noise=linear.noise,
    )
    mixing = np.asarray(linear.readout.weights.value)
    levels = np.log(mixing) if network.positive else mixing
    whiten = to_numpy(_whiteners(as_arrays(network), effort="least"))

    def weights(task: int, group: tuple[int, ...]) -> Moments:
        mean = np.concatenate([whiten.w[task][i].sum(1) * levels[task, i] for i in group])
        return Moments(mean, START_VARIANCE * np.eye(len(mean)))

    def prior(group: tuple[int, ...]) -> Moments:
        size = len(group) * network.locations_f.raw.shape[0]
        return Moments(np.zeros(size), np.eye(size))

    q = Factors(
        tuple(prior(g) for g in network.groups),
        tuple(tuple(weights(p, g) for g in network.groups) for p in range(len(levels))),
    )
    return network.with_q(trained_q(q))


@Compiled
def _whiteners(network: Network) -> Factors:
    # Compiled as one: step by step, the loops inside a Cholesky would be compiled at every call.
    return unwrap(network).whiteners()


def _has_sum(kernel: Any) -> bool:
    inner = getattr(kernel, "kernels", None) or [getattr(kernel, "kernel", None)]
    return isinstance(kernel, Sum) or any(_has_sum(k) for k in inner if k is not None)


def _stretched(kernel: Kernel, factor: float) -> Kernel:
    """Start every lengthscale that was left open at `factor` times its value."""
    moved = []
    for leaf in single_kernels(kernel):
        length = getattr(leaf, "lengthscale", None)
        # One that was left open starts at its scale.
        if isinstance(length, Parameter) and np.all(length.raw == 0):
            leaf = eqx.tree_at(lambda k: k.lengthscale, leaf, stretched(length, factor))
        moved.append(leaf)
    return eqx.tree_at(single_kernels, kernel, moved)
