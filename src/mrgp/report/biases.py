"""What was learned of each source: its bias, its noise, its weight."""

from typing import Any

import numpy as np

from mrgp.inference import BiasMap, Fit
from mrgp.models import Tree
from mrgp.plotting.coordinates import with_units
from mrgp.plotting.functions import map_title
from mrgp.plotting.learned import noise_sds
from mrgp.report.markup import chart, heading, paragraph, table


def maps_of(fit: Fit) -> list[BiasMap]:
    """Return the maps to the target that a deep model learned, or none."""
    if not _learns_maps(fit):
        return []
    asked = dict.fromkeys((n.label, n.process[1]) for n in fit.model.nodes if n.parent is not None)
    return [fit.bias_map(pair) for pair in asked]


def _learns_maps(fit: Fit) -> bool:
    """Tell whether a model has maps from sources to its target."""
    return isinstance(fit.model, Tree)


def sources_section(fit: Fit, maps: list[BiasMap], shares: dict[str, dict[str, float]]) -> str:
    """Tell noise, bias and weight of every source, and place the drawings of learned maps."""
    values, rows = fit.parameters(), []
    for (source, task), sd in zip(fit.processes, noise_sds(fit), strict=True):
        biases = (values.get(f"{name}[{source}]") for name in ("offset", "ratio"))
        row = [source, task, sd, fit.units.get(task), *map(_number, biases)]
        rows.append([*row, fit.weights[source, task]])
    header = ["source", "task", "sd of noise", "units", "offset", "ratio", "composite weight"]
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


def _number(value: Any) -> float | None:
    return None if value is None else float(np.ravel(value)[0])


def _explained(fit: Fit, rows: list[list[Any]]) -> str:
    said = "The noise is that of one value about what its source sees."
    if any(row[4] is not None or row[5] is not None for row in rows):
        said += " A source reports offset + ratio x the field; the target has neither."
    elif _learns_maps(fit):
        said += " The bias of each source is its map to the target, below."
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
        found.append(
            {
                "x": one.values.tolist(),
                "mean": one.mean.tolist(),
                "lower": low.tolist(),
                "upper": high.tolist(),
                "identity": one.units == one.source_units,
                "title": map_title(one),
                "xlabel": with_units(one.source, one.source_units),
                "ylabel": with_units(one.target, one.units),
            }
        )
    return found
