"""How a fit does beside simple rules: counts, several tasks, fits of every size, and why not."""

import dataclasses

import numpy as np
import pytest

import mrgp
import zoo
from mrgp.prediction import predict_values
from mrgp.report import beside
from mrgp.report.beside import beside_rules
from mrgp.selection import RULES
from mrgp.selection.rate_rules import RATE_RULES, by_rates
from mrgp.selection.rules import View
from report.cases import biased
from report.conftest import QUICK


def counts(rng, places=30, hours=1):
    x = np.column_stack([np.tile(rng.uniform(0, 9, (places, 2)), (hours, 1))])
    hour = np.repeat(np.arange(float(hours)), places)
    where = x if hours == 1 else np.column_stack([x, hour])
    births = rng.uniform(20, 400, len(x))
    y = rng.poisson(births * 0.02 * np.exp(0.3 * np.sin(x[:, 0])))
    names = ("east", "north", "hour")[: where.shape[1]]
    support = mrgp.points(where, inputs=names)
    about = {"likelihood": mrgp.Poisson(), "exposure": births, "name": "register", "task": "cases"}
    return mrgp.Observations(support, y, **about)


@pytest.mark.parametrize("hours", [1, 3])
def test_rates_of_other_places_are_those_of_a_slow_count(hours):
    seen = counts(np.random.default_rng(3), 12, hours)
    test, train = seen[::5], seen[np.arange(len(seen)) % 5 > 0]
    found = by_rates(train, test)
    assert set(found) == set(RATE_RULES)
    x, wanted = train.support.centres, test.support.centres
    for i in range(len(test)):
        now = np.ones(len(train), bool) if hours == 1 else x[:, 2] == wanted[i, 2]
        far = np.where(now, np.hypot(*(x[:, :2] - wanted[i, :2]).T), np.inf)
        order = np.argsort(far)
        pools = {"overall": now, "nearest": order[:1], "neighbours": order[: min(8, now.sum())]}
        for name, rows in pools.items():
            rate = train.y[rows].sum() / train.exposure[rows].sum()
            expected = max(rate, 0.5 / train.exposure.sum()) * test.exposure[i]
            assert found[name].mean[i] == pytest.approx(expected), name


def test_surprise_is_that_of_the_law_of_counts():
    from scipy.stats import binom, poisson

    seen = counts(np.random.default_rng(4))
    found = by_rates(seen[5:], seen[:5])["overall"]
    rate = seen.y[5:].sum() / seen.exposure[5:].sum()
    expected = -np.mean(poisson.logpmf(seen.y[:5], rate * seen.exposure[:5]))
    assert found.nlpd == pytest.approx(expected)
    trials = np.full(len(seen), 60.0)
    shares = mrgp.Observations(
        seen.support, np.minimum(seen.y, 60), likelihood=mrgp.Binomial(), trials=trials
    )
    found = by_rates(shares[5:], shares[:5])["overall"]
    share = shares.y[5:].sum() / trials[5:].sum()
    np.testing.assert_allclose(found.mean, 60 * share)
    expected = -np.mean(binom.logpmf(shares.y[:5], 60, share))
    assert found.nlpd == pytest.approx(expected)


def left_out(fit, data, process, folds):
    """Return the rmse of a model and of all rules, by conditioning anew for each fold."""
    seen = data[process]
    fold, errors, others = beside._fold(fit, seen), [], []
    for k in range(folds):
        test, kept = seen[np.flatnonzero(fold == k)], seen[np.flatnonzero(fold != k)]
        train = mrgp.Dataset([kept if o.process == process else o for o in data])
        errors.append(predict_values(fit.condition(train), test).mean - test.y)
        if seen.exposure is not None:
            rate = kept.y.sum() / kept.exposure.sum()
            others.append(rate * test.exposure - test.y)
        else:
            view = View.of(train, process, None)
            others.append(view.fitted(RULES["mean"]).predict(test.support)[0] - test.y)
    return [float(np.sqrt(np.mean(np.concatenate(e) ** 2))) for e in (errors, others)]


@pytest.mark.thorough
def test_counts_are_compared_with_rates_of_other_places():
    data = mrgp.Dataset([counts(np.random.default_rng(0))])
    fit = mrgp.fit(mrgp.MRGP(), data, optimiser=QUICK)
    (found,) = beside_rules(fit, data)
    model, overall = left_out(fit, data, ("register", "cases"), 5)
    assert f"the model is off by {model:.3g} (rmse)" in found.words
    assert "the best of three simple rules, the rate of " in found.words
    assert "times the exposure" in found.words
    assert "mean negative log probability of " in found.words
    assert found.words.endswith("The parameters of the model are held.")
    assert model / (1 + found.share) <= overall * (1 + 1e-9)
    plain = mrgp.Dataset([data["register"].replace(exposure=None)])
    bare = beside_rules(fit, plain)
    assert "counts need their exposure" in bare[0].words


def test_each_task_is_compared_on_its_own(fits):
    data = fits.two_tasks.kept_data()
    found = beside_rules(fits.two_tasks, data)
    assert [one.task for one in found] == ["no2", "pm10"]
    for task, one in zip(("no2", "pm10"), found, strict=True):
        assert one.words.startswith(f"At places of s, {task}, that are left out")
        model, mean = left_out(fits.two_tasks, data, ("s", task), 5)
        assert f"the model is off by {model:.3g} ug/m3" in one.words
        assert model / (1 + one.share) <= mean
    worse = [one._replace(share=0.2).behind[0] for one in found]
    assert worse[1].startswith("A simple rule is better at places of pm10 held out")


@pytest.mark.thorough
def test_of_many_values_one_fold_is_left_out_of_all_or_of_a_part(fits, monkeypatch):
    data, process = fits.coast_parts[1], ("laqn", "no2")
    monkeypatch.setattr(beside, "WHOLE", 10)
    (one,) = beside_rules(fits.coast, data)
    model, _ = left_out(fits.coast, data, process, 1)
    assert (
        f"left out, a fifth of them with 16 values, the model is off by {model:.3g} " in one.words
    )
    monkeypatch.setattr(beside, "MOST_VALUES", 100)
    (part,) = beside_rules(fits.coast, data)
    assert "in a part of the data with five places, the model is off by" in part.words


def test_where_there_is_no_comparison_the_page_says_why(fits):
    (found,) = beside_rules(fits.deep, fits.deep_data)
    assert found.share == 0.0
    assert "the maps of MRDGP rest on the values that they were trained on" in found.words
    (found,) = beside_rules(fits.curve, None)
    assert found.words.endswith("the fit does not keep its data, and none were given.")
    few = mrgp.Dataset([biased()["target"][:3]])
    fit = mrgp.fit(mrgp.MRGP(), few, optimiser=QUICK)
    (found,) = beside_rules(fit, few)
    assert "target has three places, of which too few are left" in found.words


def test_a_fit_that_cannot_be_conditioned_says_the_reason(fits, monkeypatch):
    def refuse(fit, data):
        raise ValueError("condition: there is no room.")

    monkeypatch.setattr(beside, "WHOLE", 10)
    monkeypatch.setattr(type(fits.curve), "condition", refuse)
    fit = dataclasses.replace(fits.curve, reasons=())
    (found,) = beside_rules(fit, fits.curve.kept_data())
    expected = "It was not compared with simple rules. condition: there is no room."
    assert found.words == expected


@pytest.mark.thorough
@pytest.mark.parametrize("name", zoo.RECIPES)
def test_every_model_is_compared_or_says_why(name):
    fit, data = zoo.fit(name), zoo.RECIPES[name][1]()
    found = beside_rules(fit, data)
    assert [one.task for one in found] == (list(fit.tasks) if len(fit.tasks) > 1 else [""])
    for one in found:
        if name in ("deep", "cascade"):
            assert "rest on the values that they were trained on" in one.words
        else:
            assert one.words.startswith("At places of fine")
            assert np.isfinite(one.share)
