"""What was learned of each source: its bias, its noise, its weight."""

from typing import Any

import numpy as np

from mrgp.inference import BiasMap, Fit
from mrgp.models import Tree
from mrgp.report.markup import chart, heading, paragraph, table


def maps_of(fit: Fit) -> list[BiasMap]:
    """Return the maps to the target that a deep model learned, or none."""
    if not isinstance(fit.model, Tree):
        return []
    asked = dict.fromkeys((n.label, n.process[1]) for n in fit.model.nodes if n.parent is not None)
    return [fit.bias_map(pair) for pair in asked]


def sources_section(fit: Fit, maps: list[BiasMap], shares: dict[str, dict[str, float]]) -> str:
    """Tell noise, bias and weight of every source, and place the drawings of learned maps."""
    values = fit.parameters()
    rows = []
    for source, task in fit.processes:
        noise = float(np.sqrt(fit.model.observation_noise((source, task))))
        ratio, offset = (values.get(f"{name}[{source}]") for name in ("ratio", "offset"))
        row = [source, task, noise, fit.units.get(task), _number(offset), _number(ratio)]
        rows.append([*row, fit.weights[source, task]])
    header = ["source", "task", "sd of noise", "units", "offset", "ratio", "composite weight"]
    parts = [table("Noise, bias and weight", header, rows), paragraph(_explained(fit, rows))]
    for task, of_experts in shares.items():
        many = [[label, task, share] for label, share in of_experts.items()]
        parts.append(
            table("Mean weights of the experts on the grid", ["expert", "task", "w"], many)
        )
    if maps:
        parts += [
            heading(3, "Learned maps"),
            paragraph(
                "What the target is expected to be where a source's own field has a value, with a"
                " 95 % interval. The dashed line would be no bias."
            ),
        ]
    for i, found in enumerate(maps):
        parts.append(chart(f"bias-{i}", f"Learned map from {found.source} to {found.target}"))
    return "\n".join(parts)


def _number(value: Any) -> float | None:
    return None if value is None else float(np.ravel(value)[0])


def _explained(fit: Fit, rows: list[list[Any]]) -> str:
    said = "The noise is that of one value about what its source sees."
    if any(row[4] is not None or row[5] is not None for row in rows):
        said += " A source reports offset + ratio x the field; the target has neither."
    elif isinstance(fit.model, Tree):
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
        place = ", ".join(f"{name} = {value:.4g}" for name, value in one.at.items())
        found.append(
            {
                "x": one.values.tolist(),
                "mean": one.mean.tolist(),
                "lower": low.tolist(),
                "upper": high.tolist(),
                "identity": one.units == one.source_units,
                "title": f"{one.source} to {one.target}" + (f" at {place}" if place else ""),
                "xlabel": _labelled(one.source, one.source_units),
                "ylabel": _labelled(one.target, one.units),
            }
        )
    return found


def _labelled(name: str, units: str | None) -> str:
    return f"{name} ({units})" if units else name
