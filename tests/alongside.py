"""Models by the dense covariance and along time, side by side: what both say of the same data."""

import dataclasses

import equinox as eqx
import jax
import numpy as np

from mrgp._compiled import Compiled
from mrgp.data import Scaling
from mrgp.gp import Markov
from mrgp.models import as_arrays
from mrgp.parameters import partition


def built(recipe, data, weights=None):
    """Return models by both methods, with the records that both are given."""
    scaling = Scaling.of(data)
    records = as_arrays(scaling.records(data, weights or {}))
    found = []
    for method in ("exact", "markov"):
        model = dataclasses.replace(recipe, method=method).build(data)
        found.append(as_arrays(model.with_plan(model.plan_of(records))))
    assert isinstance(found[1].solver, Markov)
    return *found, records, scaling


@Compiled
def _answers(model, records, questions):
    trained, frozen = partition(model)

    @eqx.filter_value_and_grad
    def evidence(part):
        return eqx.combine(part, frozen).log_evidence(records)

    state = model.condition(records)
    return evidence(trained), [model.moments(state, *q, joint=True) for q in questions]


def answers(model, records, questions):
    """Return log evidence, its gradient, and the joint moments of (support, task, source).

    Code that runs once is compiled with little effort.
    """
    return _answers(model, records, questions, effort="least")


def leaning_on(model, records, inducing):
    """Return a model along time with inducing places."""
    model = dataclasses.replace(model, solver=dataclasses.replace(model.solver, inducing=inducing))
    return as_arrays(model.with_plan(model.plan_of(records)))


def assert_equal(one, two, tolerance=1e-8):
    """Compare all numbers of two answers."""
    exact, other = jax.tree.leaves(one), jax.tree.leaves(two)
    assert len(exact) == len(other) > 2
    for a, b in zip(exact, other, strict=True):
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)
