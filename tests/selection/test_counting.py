"""Counts are recognised: what is chosen for them, what is said, and scores that suit them."""

import numpy as np
import pytest
from scipy.stats import kstest

import mrgp
from mrgp.distributions import COUNTS
from mrgp.evaluation import pit
from mrgp.selection.counting import chosen_for_likelihoods, may_be_counts

X = mrgp.points(np.arange(40.0)[:, None])
RNG = np.random.default_rng(0)
MANY = RNG.poisson(np.where(np.arange(40) < 20, 0.2, 9.0))


def counts(name="cases", **given):
    return mrgp.Observations(X, MANY, name=name, likelihood=mrgp.Poisson(), **given)


def test_counts_have_a_log_link_and_their_variation_is_told():
    recipe, reasons = mrgp.choose(mrgp.Dataset([counts()]))
    assert recipe == mrgp.MRGP()
    said = " ".join(reasons)
    assert "cases are poisson: one field behind a log link" in said
    assert "times as much as with one rate for all" in said
    assert "mrgp.NegativeBinomial()" in said
    assert "of cases are zero, where one rate would have" in said


def test_sources_of_a_positive_field_may_differ_by_a_ratio():
    rates = mrgp.Observations(X, MANY + 0.5, name="clinics", likelihood="log_normal")
    recipe, reasons = chosen_for_likelihoods(mrgp.Dataset([counts(), rates]))
    assert recipe.bias == "ratio"
    assert "other than cases may report a multiple" in reasons[-1]


def test_robust_values_keep_the_identity_and_gaussian_ones_go_on():
    robust = mrgp.Observations(X, MANY + 0.5, name="s", likelihood=mrgp.StudentT())
    recipe, reasons = chosen_for_likelihoods(mrgp.Dataset([robust]))
    assert recipe == mrgp.MRGP()
    assert reasons == ("The values of s are student_t: one field.",)
    plain = mrgp.Dataset([mrgp.Observations(X, MANY + 0.5)])
    assert chosen_for_likelihoods(plain) is None
    assert may_be_counts(plain) == ()


def test_whole_numbers_may_be_counts():
    data = mrgp.Dataset([mrgp.Observations(X, MANY, name="cases")])
    assert "give the source likelihood=mrgp.Poisson()" in may_be_counts(data)[0]


def test_several_tasks_of_counts_are_refused():
    data = mrgp.Dataset([counts(), counts(task="others")])
    with pytest.raises(ValueError, match=r"choose: source 'cases'.*is not Gaussian.*one task at"):
        mrgp.choose(data)


def prediction(mean, n):
    one = np.ones((1, n))
    return mrgp.Prediction(
        mrgp.points(np.arange(float(n))[:, None]),
        "t",
        None,
        None,
        one,
        mean * one,
        mean * one,
        distribution=COUNTS,
    )


def test_counts_are_scored_as_counts():
    y = np.random.default_rng(1).poisson(3.0, 2000)
    found = prediction(3.0, 2000)
    scores = mrgp.evaluate(found, y)
    entropy = (
        -np.exp(found.log_density(np.arange(2000) % 20.0)[:20])
        @ found.log_density(np.arange(2000) % 20.0)[:20]
    )
    assert scores["nlpd"] == pytest.approx(entropy, abs=0.05)
    assert scores["coverage_95"] >= 0.95
    assert scores["width_95"] == np.round(scores["width_95"])
    assert kstest(pit(found, y), "uniform").pvalue > 0.01
    assert kstest(found.cdf(y), "uniform").pvalue < 1e-6
