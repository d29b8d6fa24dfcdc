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


def test_several_tasks_of_counts_share_latent_functions_behind_a_log_link():
    data = mrgp.Dataset([counts(), counts(task="others", exposure=2.0), counts("wards")])
    recipe, reasons = mrgp.choose(data)
    assert recipe == mrgp.MRGPRN(kernel_w="constant")
    said = " ".join(reasons)
    assert "The values of cases, others, are poisson." in said
    assert "mixtures of 2 latent functions behind a log link, in proportions that do not" in said
    assert "without a ratio" in reasons[-1]


@pytest.mark.thorough
def test_counts_of_several_tasks_are_fitted_by_what_is_chosen():
    data = mrgp.Dataset([counts(), counts(task="others", exposure=2.0)])
    quick = mrgp.LBFGS(max_steps=2, starts=1, candidates=0)
    fit = mrgp.fit("auto", data, optimiser=quick, progress=None)
    assert fit.name == "MRGPRN"
    assert mrgp.predict(fit, X, task="others").interval(0.95)[0].min() > 0
    assert any("behind a log link" in reason for reason in fit.reasons)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "source 'cases', task 'value' is poisson, source 's', task 'v' is gaussian"),
        ({"likelihood": "student_t"}, "'s', task 'v' is student_t, and no model"),
        ({"likelihood": "binomial", "trials": 50}, "is binomial.* behind one link. Choose for one"),
    ],
)
def test_tasks_without_a_link_for_all_are_refused(given, text):
    other = mrgp.Observations(X, MANY, name="s", task="v", **given)
    with pytest.raises(ValueError, match=f"choose: .*{text}"):
        mrgp.choose(mrgp.Dataset([counts(), other]))


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
