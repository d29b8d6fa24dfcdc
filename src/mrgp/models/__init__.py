"""GPs make TASKS: recipes of models and the modules they build."""

from mrgp.models.answers import Components, Question, as_arrays
from mrgp.models.baselines import CenterPoint, VBAgg
from mrgp.models.contract import (
    Composite,
    Linear,
    Model,
    Process,
    Recipe,
    Sketch,
    Variational,
    Weights,
    conditioned,
    innermost,
)
from mrgp.models.deep import MRDGP, Cascade
from mrgp.models.dependent import Dependent
from mrgp.models.factors import Factors, naturals_of, spread_q, trained_q
from mrgp.models.growing import Growth, Made
from mrgp.models.linear import LinearModel
from mrgp.models.mrgp import MRGP
from mrgp.models.mrgprn import MRGPRN, begin
from mrgp.models.network import Network, NetworkPosterior
from mrgp.models.noise import Diagonal, Shared
from mrgp.models.parts import Blend, Branch, Part
from mrgp.models.readouts import Levels, Mixed, OneField
from mrgp.models.tree import Tree

__all__ = [
    "MRDGP",
    "MRGP",
    "MRGPRN",
    "Blend",
    "Branch",
    "Cascade",
    "CenterPoint",
    "Components",
    "Composite",
    "Dependent",
    "Diagonal",
    "Factors",
    "Growth",
    "Levels",
    "Linear",
    "LinearModel",
    "Made",
    "Mixed",
    "Model",
    "Network",
    "NetworkPosterior",
    "OneField",
    "Part",
    "Process",
    "Question",
    "Recipe",
    "Shared",
    "Sketch",
    "Tree",
    "VBAgg",
    "Variational",
    "Weights",
    "as_arrays",
    "begin",
    "conditioned",
    "innermost",
    "naturals_of",
    "spread_q",
    "trained_q",
]
