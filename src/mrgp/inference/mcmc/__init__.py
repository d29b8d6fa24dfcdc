"""Draws from the posterior: marginal, block Gibbs, NUTS, and how well chains have mixed."""

from mrgp.inference.mcmc.chains import Chains
from mrgp.inference.mcmc.diagnostics import effective_sample_size, r_hat
from mrgp.inference.mcmc.sampling import sample_posterior

__all__ = ["Chains", "effective_sample_size", "r_hat", "sample_posterior"]
