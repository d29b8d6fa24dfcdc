"""Which model: compare models by cross-validation, or have one chosen for the data."""

from mrgp.selection.choosing import Choice, choose
from mrgp.selection.comparing import Comparison, compare
from mrgp.selection.entrance import fit
from mrgp.selection.folds import make_folds
from mrgp.selection.rules import RULES, Best, FittedRule, Rule, best_rule, rules_for

__all__ = [
    "RULES",
    "Best",
    "Choice",
    "Comparison",
    "FittedRule",
    "Rule",
    "best_rule",
    "choose",
    "compare",
    "fit",
    "make_folds",
    "rules_for",
]
