"""Run an experiment folder: data, models and variants from its TOML, scores out."""

from mrgp.experiments.design import Cell, plan
from mrgp.experiments.exponents import exponents, exponents_table
from mrgp.experiments.margins import compare_with_rules, margins_table, told, verdicts
from mrgp.experiments.results import summarise, table
from mrgp.experiments.rivals import ExperimentError, ModelSpec
from mrgp.experiments.runs import run
from mrgp.experiments.scoring import Scored, score
from mrgp.experiments.spec import DATA, Experiment, Replicates, available, find
from mrgp.experiments.store import Store

__all__ = [
    "DATA",
    "Cell",
    "Experiment",
    "ExperimentError",
    "ModelSpec",
    "Replicates",
    "Scored",
    "Store",
    "available",
    "compare_with_rules",
    "exponents",
    "exponents_table",
    "find",
    "margins_table",
    "plan",
    "run",
    "score",
    "summarise",
    "table",
    "told",
    "verdicts",
]
