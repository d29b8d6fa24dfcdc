"""GPs make TASKS: recipes of models and the modules they build."""

from mrgp.models.baselines import CenterPoint, VBAgg
from mrgp.models.recipe import Built, Process, Recipe
from mrgp.models.single import MRGP, SingleGP

__all__ = ["MRGP", "Built", "CenterPoint", "Process", "Recipe", "SingleGP", "VBAgg"]
