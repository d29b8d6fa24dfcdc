"""GPs make TASKS: recipes of models and the modules they build."""

from mrgp.models.answers import Components, Question, as_arrays
from mrgp.models.approximate import Approximate
from mrgp.models.baselines import CenterPoint, VBAgg
from mrgp.models.conditioning import conditioned, filled
from mrgp.models.contract import (
    Composite,
    Linear,
    Model,
    Process,
    Recipe,
    Sketch,
    Variational,
    Weights,
    innermost,
)
from mrgp.models.deep import MRDGP, Cascade
from mrgp.models.defaults import default_kernel, network_kernel, plain_kernel, repeats
from mrgp.models.dependent import Dependent
from mrgp.models.factors import Factors, naturals_of, spread_q, trained_q
from mrgp.models.growing import Growth, Made
from mrgp.models.linear import LinearModel
from mrgp.models.linked import Linked
from mrgp.models.mrgp import MRGP
from mrgp.models.mrgprn import MRGPRN, begin
from mrgp.models.network import Network, NetworkPosterior
from mrgp.models.noise import Diagonal, Shared
from mrgp.models.parts import Blend, Branch, Part
from mrgp.models.readouts import Levels, Mixed, OneField
from mrgp.models.sited import Sited, SiteTerms
from mrgp.models.tree import Tree

__all__ = [
    "MRDGP",
    "MRGP",
    "MRGPRN",
    "Approximate",
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
    "Linked",
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
    "SiteTerms",
    "Sited",
    "Sketch",
    "Tree",
    "VBAgg",
    "Variational",
    "Weights",
    "as_arrays",
    "begin",
    "conditioned",
    "default_kernel",
    "filled",
    "innermost",
    "naturals_of",
    "network_kernel",
    "plain_kernel",
    "repeats",
    "spread_q",
    "trained_q",
]
