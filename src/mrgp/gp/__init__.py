"""Kernel MEETS support: covariances of aggregates, conditioning, inducing inputs."""

from mrgp.gp.admission import refusal
from mrgp.gp.chunks import map_rows, rows_at_a_time, sum_rows
from mrgp.gp.covariance import (
    QuadratureError,
    cross_covariance,
    full_covariance,
    needs_nodes,
    quadrature_error,
    variance,
)
from mrgp.gp.forms import for_each
from mrgp.gp.inducing import Inducing, start_locations
from mrgp.gp.markov import Filtered, Later, Markov, Solver, states_of, work_of
from mrgp.gp.mixtures import EntropyBound, Mixture
from mrgp.gp.products import (
    AtNodes,
    Marginal,
    block_information,
    mean_at_nodes,
    node_roots,
    nodes_of,
    posterior_at_nodes,
    product_covariance,
    sum_of_products,
    too_few_nodes,
)
from mrgp.gp.rates import (
    LinkedField,
    Places,
    Pull,
    Scatter,
    Seen,
    Step,
    damped_step,
    seen_nodes,
    strict_moments,
)
from mrgp.gp.readings import (
    Conditioned,
    Kernels,
    Posterior,
    Reading,
    Readings,
    Smoother,
    prior_covariance,
)
from mrgp.gp.solvers import Collapsed, Exact, smoother_of
from mrgp.gp.timeline import Seats, Timeline, extent_of
from mrgp.gp.variational import Moments, Natural, Sites, Whitened
from mrgp.gp.waypoints import Waypoints
from mrgp.gp.windows import Grouped

__all__ = [
    "AtNodes",
    "Collapsed",
    "Conditioned",
    "EntropyBound",
    "Exact",
    "Filtered",
    "Grouped",
    "Inducing",
    "Kernels",
    "Later",
    "LinkedField",
    "Marginal",
    "Markov",
    "Mixture",
    "Moments",
    "Natural",
    "Places",
    "Posterior",
    "Pull",
    "QuadratureError",
    "Reading",
    "Readings",
    "Scatter",
    "Seats",
    "Seen",
    "Sites",
    "Smoother",
    "Solver",
    "Step",
    "Timeline",
    "Waypoints",
    "Whitened",
    "block_information",
    "cross_covariance",
    "damped_step",
    "extent_of",
    "for_each",
    "full_covariance",
    "map_rows",
    "mean_at_nodes",
    "needs_nodes",
    "node_roots",
    "nodes_of",
    "posterior_at_nodes",
    "prior_covariance",
    "product_covariance",
    "quadrature_error",
    "refusal",
    "rows_at_a_time",
    "seen_nodes",
    "smoother_of",
    "start_locations",
    "states_of",
    "strict_moments",
    "sum_of_products",
    "sum_rows",
    "too_few_nodes",
    "variance",
    "work_of",
]
