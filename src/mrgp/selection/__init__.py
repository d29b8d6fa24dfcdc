"""Which model: compare models by cross-validation, or have one chosen for the data."""

from mrgp.selection.choosing import Choice, choose
from mrgp.selection.comparing import Comparison, compare
from mrgp.selection.entrance import fit
from mrgp.selection.folds import make_folds

__all__ = [
    "Choice",
    "Comparison",
    "choose",
    "compare",
    "fit",
    "make_folds",
]
