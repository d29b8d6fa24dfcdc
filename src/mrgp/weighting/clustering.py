"""Which observations go together: by overlap, by a word, or by the user's labels (theory 4.3)."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from mrgp.data import Dataset, by_process, require_processes
from mrgp.supports import Clusters, overlap_clusters
from mrgp.supports.components import by_appearance

Grouping = Literal["overlap", "observation", "source"]


def cluster_rows(data: Dataset, clusters: Any, largest: int | None = None) -> Clusters:
    """Group the observed values of a dataset by overlap, by a word, or by the user's labels.

    Clusters of overlapping values are split where they are larger than a `largest` size.

    >>> import mrgp
    >>> seen = mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 0.5])
    >>> cluster_rows(Dataset([seen]), "observation").count
    3
    """
    observed = data.dropna()
    counts = [len(o) for o in observed]
    if isinstance(clusters, str):
        if clusters not in get_args(Grouping):
            raise ValueError(
                f"clusters= is one of {get_args(Grouping)} or labels for every source; got"
                f" {clusters!r}."
            )
        if clusters == "overlap":
            return overlap_clusters(observed, largest=largest)
        each = np.repeat(np.arange(len(counts)), counts)
        labels = each if clusters == "source" else np.arange(sum(counts))
    else:
        labels = np.concatenate(_given_labels(data, clusters))
    numbers, _, sizes = by_appearance(labels)
    return Clusters(tuple(np.split(numbers, np.cumsum(counts)[:-1])), sizes)


def _given_labels(data: Dataset, clusters: Any) -> list[np.ndarray]:
    if isinstance(clusters, Mapping):
        clusters = _labels_by_name(data, clusters)
    if not isinstance(clusters, Sequence) or len(clusters) != len(data):
        count = f" of {len(clusters)}" if isinstance(clusters, Sequence) else ""
        raise ValueError(
            f"clusters= takes labels for every source, {len(data)} arrays in the order"
            f" {data.processes}; got a {type(clusters).__name__}{count}."
        )
    found = []
    for o, given in zip(data, clusters, strict=True):
        labels = np.asarray(given)
        if labels.shape != o.y.shape:
            raise ValueError(
                f"{o.label}: clusters= has labels of shape {labels.shape} for {len(o)} observations"
                " (missing values need one too)."
            )
        if any(label is None or label != label for label in labels.tolist()):
            raise ValueError(f"{o.label}: clusters= has missing labels; every value needs one.")
        found.append(labels[o.observed].astype(str))
    return found


def _labels_by_name(data: Dataset, clusters: Mapping[Any, Any]) -> list[Any]:
    """Look labels up by (source, task), then by source."""
    require_processes(clusters, data.processes, "clusters=")
    lacking = [p[0] for p in data.processes if p not in clusters and p[0] not in clusters]
    if lacking:
        raise ValueError(
            f"clusters= has no labels for {lacking[0]!r}; give them for {data.sources}."
        )
    return [by_process(clusters, process) for process in data.processes]
