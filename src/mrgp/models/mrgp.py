"""The recipe of the multi-resolution GP, MR-GP (theory 2)."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from mrgp._types import float64
from mrgp.data import Dataset, Frame, Scaling, as_seed, spread_of
from mrgp.gp import Collapsed, Exact, Inducing, Kernels, Solver, needs_nodes, start_locations
from mrgp.kernels import Binding, Kernel
from mrgp.links import Link
from mrgp.models.along import EXACT_LIMIT, along_time
from mrgp.models.arguments import check_choices, check_kernels, check_rule
from mrgp.models.contract import PlainRecipe, Sketch
from mrgp.models.defaults import (
    default_kernel,
    largest_variance,
    own_kernel,
    plain_kernel,
    repeats,
)
from mrgp.models.effects import with_effects
from mrgp.models.linear import LinearModel, prior_q
from mrgp.models.linked import Linked
from mrgp.models.linking import (
    level_of,
    link_of,
    linked_locations,
    refuse_closed_form,
    refuse_white,
    start_of_field,
)
from mrgp.models.noise import Diagonal
from mrgp.models.readouts import OneField
from mrgp.models.scales import Scales, framed, is_constant, level_beside, scales_of
from mrgp.models.sited import Sited
from mrgp.parameters import LogNormal, Parameter, fixed, positive, real, unwrap
from mrgp.supports import DEFAULT_RULE, Geometry, Rule

Method = Literal["auto", "exact", "markov", "collapsed", "svgp"]
Bias = Literal["none", "offset", "affine", "ratio", "field"]
Mean = Literal["zero", "constant", "linear"]

COLLAPSED_LIMIT = 20_000
EXACT_NODE_PAIRS = 9_000_000
RATIO_LOG_SD = 1.0
SPREAD_LOG_SD = 1.0
"""With it the sd of log rates lies between 0.26 and 1.9, by 95 %, before data are seen."""

SHIFTED, STRETCHED = ("offset", "affine", "field"), ("affine", "ratio", "field")
OWN_SHARE = 0.5
"""Where the variance of what a source has of its own starts, as a share of its values'.

Far from nothing: a search that starts near nothing may take what the target says for noise.
"""


@dataclasses.dataclass(frozen=True, repr=False)
class MRGP(PlainRecipe):
    """The multi-resolution GP: one latent field observed by every source through its own support.

    `method` is "exact", "markov" (exact as well, along time, for kernels that are Markov there;
    with `inducing`, or where places are many, sparse in space and exact in time), "collapsed"
    (sparse, by inducing inputs) or "svgp" (sparse, trained on minibatches, for data of any size);
    "auto" takes "markov" where it applies and is cheaper than "exact", and otherwise
    one of the others as the data grow; with `inducing` it is sparse. `bias` lets every source but
    the `target` (default: the first) report c + L f ("offset"), c + r L f ("affine"), r L f
    ("ratio") or c + r L f + L d ("field"), where d is a field of the source's own: by how much it
    is off, from place to place and from time to time. `link` is that of the field to f: under
    "log", "square" or "probit" the field is positive, or a probability, and it is the field that
    regions average; "auto" goes by the sources' likelihoods. `noise` maps sources to noise
    variances, as numbers to start from or as parameters with priors, such as
    `mrgp.positive(0.1, mrgp.LogNormal(0.1, 1.0))`. `priors=False` switches the default priors off.

    Without a `kernel`, it is Matern-3/2: of the distance in a space (lon and lat, x and y), times
    one of each other input. Covariates that no kernel names by `dims=` enter as effects: levels of
    categories, and slopes of numbers (`fit.effects()`).

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
    noise: Any = None
    link: str = "auto"

    def __post_init__(self) -> None:
        check_choices(self, method=Method, bias=Bias, mean=Mean, link=Literal["auto", Link])
        check_kernels(self, "kernel")
        Inducing.parse(self.inducing)
        if self.method == "exact" and self.inducing is not None:
            raise ValueError('MRGP: inducing= has no use with method="exact"; leave one out.')
        self._check_noise()
        check_rule(self)

    def _check_noise(self) -> None:
        if self.noise is None:
            return
        if not isinstance(self.noise, Mapping):
            raise TypeError(
                f"MRGP: noise= maps sources to noise variances, as {{'satellite': 0.1}}; got"
                f" {self.noise!r}."
            )
        for source, value in self.noise.items():
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if not (number and 0 < value < np.inf) and not isinstance(value, Parameter):
                raise ValueError(
                    f"MRGP: the noise variance of {source!r} must be a positive number, or a"
                    f" parameter such as mrgp.positive(0.1); got {value!r}."
                )

    def frame(self, data: Dataset) -> Frame:
        """Centre inputs, and values where the field has no link."""
        # A multiple of a field is not one of what is left of it after a shift.
        if link_of(self.link, data) != "identity" or self.bias == "ratio":
            return Frame.of(data, shifted=False)
        return framed(data, self._scales(data))

    def _scales(self, data: Dataset) -> Scales:
        """Return the scales of the sources, which are one where no ratio is learned."""
        if self.bias not in ("affine", "field"):
            return dict.fromkeys(data.sources, 1.0)
        return scales_of(data, self.target_of(data))

    @float64
    def build(
        self, data: Dataset, key: Any = 0, frame: Frame | None = None
    ) -> LinearModel | Sited | Linked:
        """Make the model for a dataset of one task, with starting values and priors."""
        if len(data.tasks) != 1:
            raise ValueError(
                f"MRGP models one task, and the data have {data.tasks}. Choose one with"
                " data.select(task=...)."
            )
        target = self.target_of(data)
        self._check_sources(data)
        link, frame = link_of(self.link, data), frame or self.frame(data)
        if link != "identity":
            return self._linked(data, frame, link, key)
        scaling, geometry = frame
        spread = float(scaling.scale[0])
        kernel = self.kernel or default_kernel(data, geometry, self.quadrature)
        clock = data.clock if self.kernel is None and repeats(data) else None
        kernel, geometry = with_effects(kernel, data, geometry, spread, clock)
        most = largest_variance(data, geometry, spread)
        bound = kernel.bind(Binding(geometry, spread**2, self.priors, largest=most))
        scales = self._scales(data)
        start = level_beside(data[target], 0.0) if self.bias == "ratio" else 0.0
        apart = self._apart(data, target)
        own = [self._own(data, geometry, source) for source in apart]
        solver = self._solver(data, scaling, (bound, *own), key)
        model = LinearModel(
            solver=solver,
            readout=OneField(
                mean=self._start_mean(geometry, spread, float(scaling.offset[0]), start),
                offset=self._start_offsets(data, scaling, scales),
                ratios={
                    source: self._start_ratio(scale)
                    for source, scale in scales.items()
                    if source != target and self.bias in STRETCHED
                },
                target=target,
                apart=apart,
            ),
            noise=Diagonal.of(data, scaling, self.priors, self.noise, scales),
            processes=data.processes,
            inputs=data.inputs,
        )
        return model if all(o.conjugate for o in data) else Sited(model)

    def _apart(self, data: Dataset, target: str) -> tuple[str, ...]:
        """Return the sources that have a field of their own; what is constant has none.

        The target is among them: what it alone sees would be noise, or forced upon the others.
        """
        if self.bias != "field":
            return ()
        varying = [o.name for o in data.dropna() if not is_constant(o)]
        return tuple(varying) if set(varying) - {target} else ()

    def _own(self, data: Dataset, geometry: Geometry, source: str) -> Kernel:
        """Return the bound kernel of what a source has of its own."""
        variance = OWN_SHARE * spread_of(data[source]) ** 2
        kernel = own_kernel(data, geometry, self.quadrature)
        return kernel.bind(Binding(geometry, variance, self.priors))

    def _linked(self, data: Dataset, frame: Frame, link: Link, key: Any) -> Linked:
        """Make the model of a field behind a link."""
        if self.bias in SHIFTED:
            raise ValueError(
                f"MRGP: bias={self.bias!r} shifts a field that link={link!r} keeps positive; a"
                ' source may report a multiple of it, with bias="ratio".'
            )
        if self.bias == "ratio" and link == "probit":
            raise ValueError("MRGP: probabilities have no bias; leave bias= out.")
        refuse_closed_form(self.method, link, "MRGP")
        scaling, geometry = frame
        target = self.target_of(data)
        start, spread = start_of_field(link, level_of(data))
        kernel = self.kernel or plain_kernel(data, geometry, self.quadrature)
        refuse_white(kernel, data, "MRGP")
        kernel, geometry = with_effects(kernel, data, geometry, spread)
        # Few counts hardly tell a variance, and one that is next to nothing makes intervals narrow.
        bound = kernel.bind(Binding(geometry, spread**2, self.priors, log_sd=SPREAD_LOG_SD))
        others = [source for source in data.sources if source != target]
        mean = self._start_mean(geometry, spread, 0.0, start)
        return Linked(
            kernels=(bound,),
            locations=linked_locations(
                self.inducing, data, scaling, unwrap(bound), key, self._every_node()
            ),
            readout=OneField(
                mean=mean,
                offset={},
                ratios={s: self._start_ratio() for s in others if self.bias == "ratio"},
                target=target,
            ),
            noise=Diagonal.of(data, scaling, self.priors, self.noise),
            link=link,
            likelihoods=tuple(o.likelihood for o in data),
            processes=data.processes,
            inputs=data.inputs,
            rule=self.quadrature,
        )

    def _every_node(self) -> Rule | None:
        return self.quadrature if self.method == "exact" else None

    def sketch(self, data: Dataset) -> Sketch:
        """Return one field, and which sources have a bias."""
        return Sketch("field", self.bias, self.target_of(data))

    def target_of(self, data: Dataset) -> str:
        """Return the source that has no bias: the one named, or the first."""
        if self.target is None:
            return data.sources[0]
        if self.target not in data.sources:
            raise ValueError(
                f"MRGP: target={self.target!r} is no source; the sources are {data.sources}."
            )
        return self.target

    def _start_mean(
        self, geometry: Geometry, spread: float, level: float, start: float = 0.0
    ) -> Parameter:
        if self.mean == "zero":
            # Values are centred at their level: a zero mean lies that much below.
            return fixed(np.array([-level]))
        # Covariates, which come last, have effects instead of slopes.
        scales = np.concatenate([[spread], spread / geometry.extent[list(geometry.open)]])
        count = 1 if self.mean == "constant" else len(scales)
        origin = np.concatenate([[start], np.zeros(count - 1)])
        return real(origin, scale=scales[:count])

    def _check_sources(self, data: Dataset) -> None:
        for source in self.noise or ():
            if source not in data.sources or data[source].noise_variance is not None:
                raise ValueError(
                    f"MRGP: noise= has {source!r}, which is not a source with a noise to learn; the"
                    f" sources are {data.sources}."
                )

    def _start_offsets(
        self, data: Dataset, scaling: Scaling, scales: Scales
    ) -> dict[str, Parameter]:
        """Start at no offset; on another scale, at the level of the source."""
        if self.bias not in SHIFTED:
            return {}
        spread, level, target = float(scaling.scale[0]), scaling.offset[0], self.target_of(data)
        others = [o for o in data if o.name != target]
        starts = {o.name: 0.0 if scales[o.name] == 1.0 else level_beside(o, level) for o in others}
        return {s: real(start, scale=spread * (scales[s] or 1.0)) for s, start in starts.items()}

    def _start_ratio(self, scale: float = 1.0) -> Parameter:
        """Start at the scale of a source; what is constant follows nothing."""
        if scale == 0.0:
            return fixed(0.0)
        prior = LogNormal(np.asarray(scale), np.asarray(RATIO_LOG_SD)) if self.priors else None
        return positive(scale, prior)

    def goes_by_minibatches(self, data: Dataset) -> bool:
        """Tell whether a fit is trained on minibatches of these data."""
        count = sum(o.count for o in data)
        return self.method == "svgp" or (self.method == "auto" and count > COLLAPSED_LIMIT)

    def _solver(self, data: Dataset, scaling: Scaling, kernels: Kernels, key: Any) -> Solver:
        gaussian = all(o.conjugate for o in data)
        if self.method in ("markov", "svgp") and not gaussian:
            odd = next(o for o in data if not o.conjugate)
            raise ValueError(
                f"{odd.label}: method={self.method!r} takes Gaussian values without limits; take"
                ' method="exact" or "collapsed" for others.'
            )
        wanted = self.method == "markov"
        here = all(o.stored is None for o in data)
        if wanted or (self.method == "auto" and self.inducing is None and gaussian and here):
            placed = (self.inducing, scaling.centre, as_seed(key))
            along = along_time(kernels, data, self.quadrature, wanted, *placed)
            if along is not None:
                return along
        small = (
            here
            and self.inducing is None
            and all(exact_is_cheap(data, unwrap(kernel), self.quadrature) for kernel in kernels)
        )
        if self.method == "exact" or (self.method == "auto" and small):
            return Exact(kernels, rule=self.quadrature)
        supports = tuple(o.dropna().support.shift(scaling.centre) for o in data)
        inducing = Inducing.parse(self.inducing)
        field = unwrap(kernels[0])
        placed = start_locations(inducing, supports, scaling.centre, field, as_seed(key))
        batches = self.goes_by_minibatches(data) and gaussian
        q = prior_q(len(kernels) * placed.raw.shape[0]) if batches else None
        return Collapsed(kernels, placed, q, rule=self.quadrature)


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
