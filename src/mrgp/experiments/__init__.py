"""Run an experiment folder: data, models and variants from its TOML, scores out."""

from mrgp.experiments.running import run, summarise, table, write
from mrgp.experiments.scoring import evaluate_quietly, score, score_by_site
from mrgp.experiments.spec import (
    DATA,
    Experiment,
    ExperimentError,
    ModelSpec,
    Replicates,
    available,
    find,
    read,
)

__all__ = [
    "DATA",
    "Experiment",
    "ExperimentError",
    "ModelSpec",
    "Replicates",
    "available",
    "evaluate_quietly",
    "find",
    "read",
    "run",
    "score",
    "score_by_site",
    "summarise",
    "table",
    "write",
]
