"""What to be careful of in a fit: limits, directions, noise, inducing inputs; each as a sentence.

A caution is a function of a fit that says what was found, its likely cause, and what to try.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Bool

from mrgp._types import float64
from mrgp.gp import Collapsed, Markov
from mrgp.inference import Fit
from mrgp.kernels import lengthscale_inputs
from mrgp.parameters import Parameter, unwrap

ALIKE = 3.0
"""How many times longer one direction of a space may be than another."""

MOST_NOISE = 0.8
OTHER_LEVEL = 1.5
MOST_MISSED, MOST_LEFT_OUT = 0.1, 1e-6
FARTHEST_RATIO = 20.0
_ROUNDING = 1e-6


@float64
def cautions(fit: Fit) -> tuple[str, ...]:
    """Return all that is to be careful of in a fit; mostly nothing.

    >>> import numpy as np, mrgp
    >>> x = np.linspace(0.0, 9.0, 40)[:, None]
    >>> seen = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]) + 0.01 * np.cos(40 * x[:, 0]))
    >>> cautions(mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen])))
    ()
    """
    return tuple(said for caution in CAUTIONS for said in caution(fit))


def doubts_of_data(fit: Fit) -> Iterator[str]:
    """Say which values of the data may be mistakes: far apart, stuck, in other units."""
    yield from fit.doubts


def lengthscales_at_limits(fit: Fit) -> Iterator[str]:
    """Say which lengthscales are as long, or as short, as a fit may make them."""
    along = lengthscale_inputs(fit.model)
    for name, parameter in _trained(fit, ".lengthscale"):
        low, high = _reached(parameter)
        groups = along.get(id(parameter), ())
        for i, (short, long) in enumerate(zip(low, high, strict=True)):
            where = _where(fit, groups[i]) if i < len(groups) else ""
            if long:
                yield (
                    f"{name}{where} is at its upper limit, three times the extent of the data: what"
                    " is seen there is nearly constant or a trend, and prediction beyond the data"
                    ' rests on the limit. Try mean="linear", or a kernel that leaves the input out.'
                )
            elif short:
                yield (
                    f"{name}{where} is at its lower limit: neighbouring values tell nothing of one"
                    " another, and the kernel stands in for noise. Look for places given twice, or"
                    " in the wrong units, and for values that are not of one quantity."
                )


def variances_at_limits(fit: Fit) -> Iterator[str]:
    """Say which variances of kernels are as large, or as small, as a fit may make them."""
    for name, parameter in _trained(fit, ".variance"):
        low, high = _reached(parameter)
        if name.startswith("own["):
            # Next to nothing is what a source has of its own that is off by a line alone.
            if high.any():
                yield (
                    f"{name} is at its upper limit: what this source reports has next to nothing to"
                    " do with what others report. Look at its units and times, or fit without it."
                )
        elif high.any():
            yield (
                f"{name} is at its upper limit, many times the variance of the values: a trend, or"
                " a level far from the data's mean, is taken for variation. Try"
                ' mean="linear", leave lengthscales open, and look for extreme values.'
            )
        elif low.any():
            yield (
                f"{name} is at its lower limit, next to nothing: this term of the kernel explains"
                " no part of the values. Try the kernel without it."
            )


def ratios_at_limits(fit: Fit) -> Iterator[str]:
    """Say which sources hardly follow the field, or follow it many times over."""
    for name, value in fit.parameters().items():
        if name.startswith("ratio[") and value == 0:
            yield (
                f"{name} is 0: the source has one value throughout, and says nothing of the field."
                " Look whether it is stuck, or leave it out."
            )
        elif name.startswith("ratio[") and not 1 / FARTHEST_RATIO < value < FARTHEST_RATIO:
            yield (
                f"{name} is {float(value):.3g}: the source and the target do not show one field, or"
                ' differ in units. Try bias="offset", or a fit without the source, and compare.'
            )


def directions_that_differ(fit: Fit) -> Iterator[str]:
    """Say along which directions of one space lengthscales are far apart."""
    along, values = lengthscale_inputs(fit.model), fit.parameters()
    for name, parameter in _trained(fit, ".lengthscale"):
        groups, lengths = along.get(id(parameter), ()), np.ravel(values[name])
        for space in fit.spaces:
            columns = {fit.inputs.index(direction) for direction in space}
            own = [(g, v) for g, v in zip(groups, lengths, strict=False) if columns & {*g}]
            if len(own) < 2:
                continue
            (short, least), *_, (long, most) = sorted(own, key=lambda pair: pair[1])
            if most > ALIKE * least:
                there, here = (fit.inputs[group[0]] for group in (long, short))
                yield (
                    f"{name} is {most / least:.1f} times as long along {there} as along {here},"
                    " directions of one space: maps have stripes. A few places seem to tell this"
                    " by chance. Leave the lengthscale open, for one in all directions; give the"
                    ' kernel metric="full" where the field is elongated indeed.'
                )


def noise_that_eats_the_signal(fit: Fit) -> Iterator[str]:
    """Say of which sources most is taken for noise."""
    named = fit.model.named()
    for i, (source, task) in enumerate(fit.processes):
        name = next((n for n in _noise_names(source, task) if n in named), None)
        if name is None or not named[name].trainable:
            continue
        spread = fit.scaling.scale[fit.scaling.index(task)] ** 2
        if fit.records is not None:
            spread = float(np.var(fit.records[i].y))
        share = float(fit.model.observation_noise((source, task))) / spread if spread else 0.0
        others = sum(of == task for _, of in fit.processes) > 1
        if share > OTHER_LEVEL and others and f"offset[{source}]" not in named:
            yield (
                f"{name} is {share:.2g} times the variance of these values: {source} is on another"
                " level than what other sources say of the field, and that is taken for noise. Try"
                ' bias="offset" or "affine", and name the source that is right with target=.'
            )
        elif share > MOST_NOISE:
            yield (
                f"{name} is {min(share, 1.0):.0%} of the variance of these values: next to nothing"
                " of them is explained. What differs from place to place, and stays, may be taken"
                " for noise. Try covariates, such as the type of a site; a kernel with shorter"
                " lengthscales; or look whether the values are of one quantity."
            )


def inducing_inputs_that_miss(fit: Fit) -> Iterator[str]:
    """Say how much of the field's variance inducing inputs cannot follow."""
    linear = fit.model.linear
    if linear is None or not isinstance(linear.solver, Collapsed) or linear.field is None:
        return
    origin = np.zeros((1, len(fit.inputs)))
    signal = float(np.asarray(unwrap(linear.solver.kernels[0]).pair(origin, origin))[0])
    counts = np.array([fit.counts[process][0] for process in fit.processes], float)
    weights = np.array([fit.weights[process] for process in fit.processes])
    noises = np.array([fit.model.observation_noise(process) for process in fit.processes])
    # What is missed is known in units of each value's noise, of which small ones count most.
    typical = counts.sum() / np.sum(counts * weights / noises)
    missed = float(fit.state.unexplained) * typical / signal if signal > 0 else 0.0
    if missed > MOST_MISSED:
        yield (
            f"The {linear.solver.locations.raw.shape[0]} inducing inputs miss {missed:.0%} of the"
            " field's variance: variations between them are smoothed away, and taken for noise."
            ' Give more, as inducing=1000, or method="exact" where there are few thousand values.'
        )


def series_that_leave_out(fit: Fit) -> Iterator[str]:
    """Say how much of a periodic kernel its series along time cannot follow."""
    linear = fit.model.linear
    if linear is None or not isinstance(linear.solver, Markov):
        return
    missed = linear.solver.series_error()
    if missed > MOST_LEFT_OUT:
        yield (
            f"The series of a periodic kernel leaves {missed:.1g} of its variance out, with the"
            " sharpest of what repeats. Give the kernel a longer lengthscale, such as"
            ' lengthscale=mrgp.fixed(0.6), or take method="exact" for few values.'
        )


Caution = Callable[[Fit], Iterator[str]]
CAUTIONS: tuple[Caution, ...] = (
    doubts_of_data,
    lengthscales_at_limits,
    variances_at_limits,
    ratios_at_limits,
    directions_that_differ,
    noise_that_eats_the_signal,
    inducing_inputs_that_miss,
    series_that_leave_out,
)


def _trained(fit: Fit, ending: str) -> Iterator[tuple[str, Parameter]]:
    for name, parameter in fit.model.named().items():
        if name.endswith(ending) and parameter.trainable:
            yield name, parameter


def _reached(parameter: Parameter) -> tuple[Bool[np.ndarray, " k"], Bool[np.ndarray, " k"]]:
    """Tell which numbers of a parameter are at the lower and at the upper end of a fit's range."""
    raw = np.ravel(parameter.raw)
    low, high = (np.broadcast_to(np.ravel(b), raw.shape) for b in parameter.transform.bounds())
    return raw <= low + _ROUNDING, raw >= high - _ROUNDING


def _where(fit: Fit, columns: tuple[int, ...]) -> str:
    known = [fit.inputs[d] for d in columns if d < len(fit.inputs)]
    return f" along {' and '.join(known)}" if known and len(fit.inputs) > 1 else ""


def _noise_names(source: str, task: str) -> tuple[Any, ...]:
    return f"noise_variance[{source}]", f"noise_variance[{source}, {task}]"
