"""The sections of a page in words and tables: data, model, checks, and what each source is like."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from mrgp.checks import BiasMap, has_effects
from mrgp.config.described import KERNELS
from mrgp.data import Dataset, Observations
from mrgp.evaluation import HOW_TO_READ, SCORES, TABLE
from mrgp.inference import Fit
from mrgp.parameters import at_limit, unwrap
from mrgp.plotting.calibration import LEVELS, shares_inside
from mrgp.plotting.coordinates import with_units
from mrgp.plotting.functions import map_title
from mrgp.plotting.learned import lengthscales_along, noise_sds, unit_of
from mrgp.report.layout import Layout, written
from mrgp.report.markup import (
    chart,
    counted,
    heading,
    joined,
    lines,
    listing,
    paragraph,
    table,
)
from mrgp.report.verdicts import FEW, SAID, Check
from mrgp.supports import Nodes, Points, Polygons, Spaces, Support, time_column

EFFECTS = (
    "Levels of a category are about the mean of all its levels, in the units of the values; a slope"
    " is for one unit of its column. Intervals are of 95 %. Maps are drawn without these effects."
)
UNITS = "Lengths over places on Earth are in km, over time in the unit shown."
RECIPES = {
    "MRGP": "One field, seen by every source through its own support: points, cells, windows.",
    "VBAgg": "One field, seen by every source through its own support, by variational bounds.",
    "MRGPRN": "Several tasks as mixtures of latent functions, each seen through its own support.",
    "MRDGP": "A map from every source to the target is learned, and what they say is mixed.",
    "Cascade": "Each source is mapped to the next finer one; the last one predicts.",
    "CenterPoint": "Every region is taken for its centre; this is a baseline.",
    "Dependent": "A source that averages the values of another shares their errors.",
}
BIASES = {
    "offset": "the field and an offset",
    "ratio": "a multiple of the field",
    "affine": "an offset and a multiple of the field",
    "field": "an offset, a multiple of the field, and a field of their own, by which they are off"
    " from place to place and from time to time; the target has one of what it alone sees",
}
"""What sources other than the target report."""
BEHIND = {"log": "log", "square": "square root", "probit": "probit"}
"""Of what a Gaussian process is where the field lies behind a link."""
NOUNS = {Polygons: "polygons", Nodes: "weighted nodes"}
Along = dict[str, Spaces]


def data_section(fit: Fit, data: Dataset | None, layout: Layout) -> str:
    """Tell what was fitted: values, supports, ranges and extents."""
    if data is None:
        counts = fit.counts.items()
        rows = [[*p, used, missing, fit.units_of(p)] for p, (used, missing) in counts]
        said = "The fit does not keep its data, so that their ranges and extents are not known."
        header = ["source", "task", "values", "missing", "units"]
        return paragraph(said) + table("Sources", header, rows)
    rows = [_about(observed, fit) for observed in data]
    header = ["source", "task", "support", "values", "missing", "units", "least", "mean", "most"]
    extents = [[o.name, o.task, *_extents(o, layout)] for o in data]
    names = [layout.label(d) for d in range(len(layout.names))]
    return table("Sources", header, rows) + table("Extent", ["source", "task", *names], extents)


def _about(observed: Observations, fit: Fit) -> list[Any]:
    seen, counts = observed.dropna().y, fit.counts[observed.process]
    units = observed.units
    if units and observed.exposure is not None:
        units = f"counts, of a field {units}"
    ends = [float(seen.min()), float(seen.mean()), float(seen.max())]
    return [*observed.process, support_words(observed), *counts, units, *ends]


def support_words(observed: Observations) -> str:
    """Say in a word or two what the regions of a source are.

    >>> import mrgp
    >>> support_words(mrgp.Observations(mrgp.intervals([0.0], [1.0]), [3.0]))
    'means over cells'
    """
    support = observed.support
    counts = observed.likelihood.domain == "count"
    if isinstance(support, Points):
        return "counts at points" if counts else "points"
    if not counts and _at_points(support):
        return f"{support.kind}s over windows at points"
    parts = [part for part, _ in support.members]
    known = [noun for kind, noun in NOUNS.items() if any(isinstance(part, kind) for part in parts)]
    what = next(iter(known), "cells")
    return f"{'count' if counts else support.kind}s over {what}"


def _at_points(support: Support) -> bool:
    """Tell whether regions are windows of time, and points along all other inputs."""
    clock = time_column(support.input_names, support.axes)
    lower, upper = (np.asarray(bound) for bound in support.bounds)
    wide = np.any(upper > lower, axis=0)
    return clock is not None and bool(wide[clock]) and len(wide) > 1 and int(wide.sum()) == 1


def _extents(observed: Observations, layout: Layout) -> list[str]:
    found = []
    for side, axis in zip(observed.support.sides, layout.axes, strict=False):
        said = written(np.array([side.lower.min(), side.upper.max()]), axis)
        found.append(" to ".join(v if isinstance(v, str) else _apart(v, said) for v in said))
    return found


def _apart(value: float, ends: Sequence[float]) -> str:
    """Return a number with as many decimals as a hundredth of its range needs.

    >>> _apart(-84.32381, [-84.32381, -75.45660]), _apart(1358.62, [804.19, 1358.62])
    ('-84.32', '1359')
    """
    span = ends[1] - ends[0]
    return f"{value:.6g}" if span <= 0 else f"{value:.{max(0, 2 - int(np.floor(np.log10(span))))}f}"


def model_section(fit: Fit) -> str:
    """Tell the recipe, why it was chosen, how training went, and what was found."""
    parts = [paragraph(recipe_words(fit))]
    if len(fit.tasks) > 1:
        parts.append(
            paragraph(f"There are {counted(len(fit.tasks), 'task')}: {joined(fit.tasks)}.")
        )
    if fit.reasons:
        parts += [heading(3, "Why this model"), listing(fit.reasons)]
    parts += [heading(3, "How training went"), listing(_training(fit))]
    parts += [heading(3, "Parameters"), paragraph(UNITS)]
    along = lengthscales_along(fit)
    rows = [_parameter(fit, name, value, along) for name, value in fit.parameters().items()]
    parts.append(table("Parameters", ["name", "value", "units", "remark"], rows))
    return "\n".join([*parts, *_effects(fit)])


def _effects(fit: Fit) -> list[str]:
    """Tell the effects of covariates, where the fit has such."""
    if not has_effects(fit):
        return []
    found = fit.effects()
    rows = [[name, *map(float, found.loc[name])] for name in found.index]
    head = ["effect", "mean", "sd", "from", "to"]
    return [heading(3, "Effects of covariates"), paragraph(EFFECTS), table("Effects", head, rows)]


def recipe_words(fit: Fit) -> str:
    """Return the recipe of a fit in words."""
    recipe, said = fit.recipe, []
    while recipe is not None:
        name = type(recipe).__name__
        said.append(f"{name}: {RECIPES.get(name, 'a model of its own.')}")
        given = vars(recipe)
        kernels = {name: given[name] for name in KERNELS if given.get(name) is not None}
        said += [f"{name}: {_flat(value)}." for name, value in kernels.items()]
        if given.get("bias", "none") != "none":
            bias = BIASES.get(given["bias"], f"the field with a bias ({given['bias']})")
            said.append(f"Sources other than the target report {bias}.")
        recipe = recipe.inner
    return " ".join(said)


def _flat(value: Any) -> str:
    """Return a recipe's setting in one line."""
    return re.sub(r"\( | (?=\))", lambda found: found[0].strip(), " ".join(str(value).split()))


def _training(fit: Fit) -> list[str]:
    found = [str(fit.status)]
    if len(fit.history):
        found.append(f"log evidence or bound, with log prior: {fit.history[-1]:.3f}")
    found.append(f"optimiser: {type(fit.optimiser).__name__}")
    found.append(str(fit.model.account(fit.state)))
    if fit.treatment == "keep":
        found.append("parameters are those of each source on its own")
    if fit.treatment == "adjusted":
        found.append("the posterior was widened by adjust_curvature")
    return found


def _parameter(fit: Fit, name: str, value: Any, along: Along) -> list[Any]:
    known = fit.model.named().get(name)
    remark = ""
    if known is not None:
        remark = "fixed" if not known.trainable else "at its limit" if at_limit(known) else ""
    if len(fit.inputs) > 1 and name in along:
        groups = "; ".join(", ".join(fit.inputs[d] for d in group) for group in along[name])
        remark = ", ".join(filter(None, [groups and f"of {groups}", remark]))
    numbers = [float(v) for v in np.ravel(value)]
    shown: Any = numbers[0] if len(numbers) == 1 else ", ".join(f"{v:.4g}" for v in numbers)
    return [name, shown, _units(fit, name, len(numbers), along), remark]


def _units(fit: Fit, name: str, count: int, along: Along) -> str | None:
    """Return the units of a parameter, where they are known for sure."""
    if name.startswith("expert["):
        return None
    if name in along:
        units = [unit_of(fit, group[0]) if group else None for group in along[name]]
        if len(set(units)) == 1:
            return units[0]
        return ", ".join(str(u or "–") for u in units) if count == len(units) else None
    named = [p for p in fit.processes if f"[{p[0]}]" in name or f"[{p[0]}, {p[1]}]" in name]
    own = {fit.units_of(process) for process in named or fit.processes}
    unit = next(iter(own)) if len(own) == 1 else None
    behind = _behind(fit)
    if behind and name.endswith(("kernel.variance", "mean.constant")):
        # Kernels and means are those of what the link is applied to.
        unit = f"{behind} of the {'rate' if fit.exposed else 'field'}"
    squares = ("kernel.variance", "noise_variance")
    if unit and (name.endswith(squares) or name.startswith("noise_variance")):
        return f"({unit})²"
    level = name.startswith("offset[") or name.endswith("mean.constant")
    return unit if unit and level else None


def _behind(fit: Fit) -> str:
    """Return which function of the field is a Gaussian process, or nothing if it is itself one."""
    recipe, asked = fit.recipe, ""
    while recipe is not None and not asked:
        asked, recipe = BEHIND.get(vars(recipe).get("link", ""), ""), recipe.inner
    scales = {likelihood.scale for likelihood in fit.likelihoods.values()}
    return asked or next((BEHIND[scale] for scale in ("probit", "log") if scale in scales), "")


def checks_section(found: list[Check], by_site: str = "") -> str:
    """Tell the scores, place the drawings of calibration, and tell the scores `by_site`."""
    if not found:
        return paragraph(
            "There are no scores: the fit does not keep its data, and no others were given."
            " `mrgp report FIT --data FILE` scores values that were held out."
        )
    parts = []
    for i, check in enumerate(found):
        title, words = SAID[check.name]
        header = ["source", "task", "n", *(SCORES[name].heading for name in TABLE)]
        scores = check.scores.items()
        rows = [[*process, *(found[name] for name in ("n", *TABLE))] for process, found in scores]
        parts += [
            heading(3, title),
            paragraph(words),
            *([paragraph(f"These are {check.sample}.")] if check.sample else []),
            table(f"Scores: {title.lower()}", header, rows),
            paragraph(HOW_TO_READ),
        ]
        if any(len(values) < FEW for values in check.pit.values()):
            parts.append(paragraph(f"Where there are fewer than {FEW} values, shares say little."))
        parts += [paragraph(words) for words in whole_numbers(check)]
        inside = chart(f"coverage-{i}", f"Share of values inside intervals, {title.lower()}")
        transform = chart(f"pit-{i}", f"Probability integral transform, {title.lower()}")
        parts.append(f'<div class="pair">{inside}{transform}</div>')
        if check.remarks:
            parts += [heading(4, "What the residuals say"), lines(check.remarks)]
    parts.append(by_site)
    return "\n".join(parts)


def whole_numbers(check: Check) -> list[str]:
    """Say why intervals of counts hold more in the table than in the drawing below it."""
    found = []
    for process, (said, _) in check.pairs.items():
        if not said.distribution.discrete:
            continue
        drawn = shares_inside(check.pit[process])[int(np.abs(LEVELS - 0.5).argmin())]
        closed = check.scores[process]["coverage_50"]
        found.append(
            f"Values of {process[0]} are whole numbers, and so are the ends of their intervals,"
            " which belong to them: where counts are small, intervals hold more than their share"
            f" however good the fit is. The table counts so: {closed:.2g} inside those of 50 %. The"
            " drawings spread each count evenly from the probability of fewer to that of as many,"
            f" which a good fit has on the dashed lines: {drawn:.2g}."
        )
    return found


def maps_of(fit: Fit) -> list[BiasMap]:
    """Return the maps to the target that a deep model learned, or none."""
    return [fit.bias_map(pair) for pair in fit.model.maps if isinstance(pair, tuple)]


def biased_sources(fit: Fit) -> list[str]:
    """Return the sources whose values are on another scale than the map."""
    mapped = {pair[0] for pair in fit.model.maps if isinstance(pair, tuple)}
    known = fit.parameters()
    of = [s for s in fit.sources if f"offset[{s}]" in known or f"ratio[{s}]" in known]
    return [source for source in fit.sources if source in mapped or source in of]


def sources_section(fit: Fit, maps: list[BiasMap], shares: dict[str, dict[str, float]]) -> str:
    """Tell noise, bias and weight of every source, and place the drawings of learned maps."""
    values, rows, apart = fit.parameters(), [], own_sds(fit)
    for (source, task), sd in zip(fit.processes, noise_sds(fit), strict=True):
        biases = (values.get(f"{name}[{source}]") for name in ("offset", "ratio"))
        known = (None if bias is None else float(bias) for bias in biases)
        units = fit.units_of((source, task))
        # Counts scatter as their rate says: they have no noise of their own.
        own = fit.likelihoods[source, task].own == "noise_variance"
        row = [source, task, sd if own else None, units, *known, fit.weights[source, task]]
        rows.append(row + [apart.get(source)] * bool(apart))
    header = ["source", "task", "sd of noise", "units", "offset", "ratio", "composite weight"]
    header += ["sd of its own"] * bool(apart)
    parts = [table("Noise, bias and weight", header, rows), paragraph(_explained(fit, rows))]
    for task, of_experts in shares.items():
        many = [[label, task, share] for label, share in of_experts.items()]
        title = "Mean weights of the experts on the grid"
        parts.append(table(title, ["expert", "task", "w"], many))
    if maps:
        said = (
            "What the target is expected to be where a source's own field has a value, with a 95 %"
            " interval. The dashed line would be no bias."
        )
        parts += [heading(3, "Learned maps"), paragraph(said)]
    for i, found in enumerate(maps):
        parts.append(chart(f"bias-{i}", f"Learned map from {found.source} to {found.target}"))
    return "\n".join(parts)


def own_sds(fit: Fit) -> dict[str, float]:
    """Return the sd, at a point, of what each source has of its own beside the field."""
    if fit.model.linear is None:
        return {}
    origin = np.zeros((1, len(fit.inputs)))
    kernels = fit.model.linear.own.items()
    return {s: float(np.asarray(unwrap(k).pair(origin, origin))[0]) ** 0.5 for s, k in kernels}


def _explained(fit: Fit, rows: list[list[Any]]) -> str:
    said = "The noise is that of one value about what its source sees."
    others = [f"{s} as {fit.likelihoods[s, t].name}" for s, t, sd, *_ in rows if sd is None]
    if others:
        said += f" Values scatter by their likelihood: those of {joined(others)}."
    if any(row[4] is not None or row[5] is not None for row in rows):
        said += " A source reports offset + ratio x the field; the target has neither."
        if own_sds(fit):
            said += " All have a field of their own as well, of the sd in the last column."
    elif fit.recipe.fitted == "parts":
        said += " The bias of each source is its map to the target, below."
    elif len(fit.tasks) > 1:
        said += " No bias was fitted: sources of one task are taken to see the same field."
    else:
        said += " No bias was fitted: all sources are taken to see the same field."
    if all(weight == 1 for weight in fit.weights.values()):
        return said + " All values count in full (composite weights of one)."
    return said + " A composite weight below one makes up for errors that sources share."


def drawings(maps: list[BiasMap]) -> list[dict[str, Any]]:
    """Return the curves of learned maps, for the page to draw."""
    found = []
    for one in maps:
        low, high = one.interval(0.95)
        curves = {"x": one.values, "mean": one.mean, "lower": low, "upper": high}
        words = {
            "identity": one.units == one.source_units,
            "title": map_title(one),
            "xlabel": with_units(one.source, one.source_units),
            "ylabel": with_units(one.target, one.units),
        }
        found.append({name: values.tolist() for name, values in curves.items()} | words)
    return found
