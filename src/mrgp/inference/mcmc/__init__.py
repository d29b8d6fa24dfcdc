"""Draws from the posterior: marginal, block Gibbs, NUTS, and how well chains have mixed."""

from mrgp.inference.mcmc.chains import Chains
from mrgp.inference.mcmc.diagnostics import effective_sample_size, r_hat
from mrgp.inference.mcmc.draws import draw_posterior, sampler_of

__all__ = ["Chains", "draw_posterior", "effective_sample_size", "r_hat", "sampler_of"]
