"""GPs make TASKS: recipes of models and the modules they build."""

from mrgp.models.baselines import CenterPoint, VBAgg
from mrgp.models.coregionalised import Coregionalised
from mrgp.models.deep import MRDGP, Cascade
from mrgp.models.dependent import Dependent, DependentGP
from mrgp.models.factors import Factors, naturals_of, spread_q, trained_q
from mrgp.models.growing import Made, grow
from mrgp.models.mrgp import MRGP
from mrgp.models.mrgprn import MRGPRN, begin
from mrgp.models.network import Network, NetworkPosterior
from mrgp.models.parts import Blend, Node, Part
from mrgp.models.recipe import Process, Recipe, conditioned
from mrgp.models.single import SingleGP
from mrgp.models.tasks import Tasks
from mrgp.models.tree import Tree

__all__ = [
    "MRDGP",
    "MRGP",
    "MRGPRN",
    "Blend",
    "Cascade",
    "CenterPoint",
    "Coregionalised",
    "Dependent",
    "DependentGP",
    "Factors",
    "Made",
    "Network",
    "NetworkPosterior",
    "Node",
    "Part",
    "Process",
    "Recipe",
    "SingleGP",
    "Tasks",
    "Tree",
    "VBAgg",
    "begin",
    "conditioned",
    "grow",
    "naturals_of",
    "spread_q",
    "trained_q",
]
