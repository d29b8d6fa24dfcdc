"""GPs make TASKS: recipes of models and the modules they build."""

from mrgp.models.baselines import CenterPoint, VBAgg
from mrgp.models.coregionalised import Coregionalised
from mrgp.models.dependent import Dependent, DependentGP
from mrgp.models.factors import Factors, naturals_of, spread_q, trained_q
from mrgp.models.mrgp import MRGP
from mrgp.models.mrgprn import MRGPRN, begin
from mrgp.models.network import Network, NetworkPosterior
from mrgp.models.recipe import Built, Process, Recipe
from mrgp.models.single import SingleGP
from mrgp.models.tasks import Tasks

__all__ = [
    "MRGP",
    "MRGPRN",
    "Built",
    "CenterPoint",
    "Coregionalised",
    "Dependent",
    "DependentGP",
    "Factors",
    "Network",
    "NetworkPosterior",
    "Process",
    "Recipe",
    "SingleGP",
    "Tasks",
    "VBAgg",
    "begin",
    "naturals_of",
    "spread_q",
    "trained_q",
]
