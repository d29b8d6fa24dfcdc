"""Sets of the gauntlet: what is held out, means over windows, and disguises."""

import os
from pathlib import Path

import numpy as np
import pytest

import mrgp
from mrgp.datasets import gauntlet, gauntlet_starts
from mrgp.datasets.gauntlet import LONDON, SETS, SEUS
from mrgp.datasets.worlds import WORLDS, field
from mrgp.experiments.yardstick import score_rule
from mrgp.selection.features import covariates_of

RECORDED = pytest.mark.skipif(
    not Path(os.environ.get("MRGP_DATA") or "-").is_dir(), reason="needs the recorded data"
)


def places(support):
    x = support.centres
    return {tuple(row) for row in x[:, 1:] if support.input_names[0] == "time"} or {
        tuple(row) for row in x[:, :2]
    }


@pytest.mark.parametrize("world", WORLDS)
def test_a_quarter_of_the_places_is_held_out_and_seeds_differ(world):
    case, again, other = gauntlet("0", world), gauntlet("0", world), gauntlet("1", world)
    target = case.data[case.target, case.task]
    assert len(places(case.support)) == pytest.approx(len(places(target.support)) / 3, abs=1)
    assert not places(case.support) & places(target.support)
    np.testing.assert_array_equal(case.y, again.y)
    assert not np.array_equal(case.y, other.y)
    assert np.isfinite(case.y).all()
    assert 100 <= sum(len(o) for o in case.data) + len(case.y) <= 30_000


@RECORDED
@pytest.mark.parametrize("world", [*LONDON, *SEUS])
def test_recorded_sets_hold_sites_out_and_know_their_types(world):
    start = gauntlet_starts(world)[-1]
    case = gauntlet(start, world)
    target = case.data[case.target]
    held = (
        places(case.support) if world in LONDON else {tuple(r) for r in case.support.centres[:, :2]}
    )
    seen = (
        places(target.support)
        if world in LONDON
        else {tuple(r) for r in target.support.centres[:, :2]}
    )
    assert not held & seen
    assert len(held) == pytest.approx((len(held) + len(seen)) / 4, abs=1)
    assert sum(len(o) for o in case.data) <= 30_000
    assert len(case.means["window"]) == len(held)
    if world in LONDON:
        for support in (target.support, case.support, *(m.support for m in case.means.values())):
            assert "Roadside" in covariates_of(support)["type"]


@RECORDED
def test_blocks_are_made_from_sites_that_are_neither_trained_on_nor_scored():
    alone, beside = gauntlet("01-10", "london"), gauntlet("01-10", "london-blocks")
    sites = {
        name: places(c.data["sites"].support) | places(c.support)
        for name, c in {"alone": alone, "beside": beside}.items()
    }
    assert len(sites["beside"]) == pytest.approx(2 / 3 * len(sites["alone"]), abs=1)
    assert sites["beside"] < sites["alone"]


def test_means_are_of_the_values_held_out_at_the_hours_that_have_one():
    case = gauntlet("1", "stuck")
    day = case.means["day"]
    nodes = np.asarray(day.support.x)
    x, weights = case.support.centres, np.asarray(day.support.weights)
    for row in (0, len(day) - 1):
        inside = np.all(np.isclose(x[:, 1:], nodes[row, 0, 1:]), axis=1)
        inside &= x[:, 0] // 24 == nodes[row, 0, 0] // 24
        assert day.y[row] == pytest.approx(case.y[inside].mean())
        np.testing.assert_allclose(np.sort(nodes[row, :, 0]), np.sort(x[inside, 0]))
    np.testing.assert_allclose(weights.sum(1), 1.0)
    assert case.means["window"].y.mean() == pytest.approx(case.y.mean())


def test_windows_leave_out_hours_without_a_value():
    from mrgp.datasets.gauntlet import case_of

    x = np.array([[h, e] for e in (0.0, 1.0, 2.0, 3.0) for h in range(4)])
    y = np.arange(16.0)
    y[8] = np.nan
    seen = mrgp.Observations(mrgp.points(x, inputs=("time", "east")), y)
    case = case_of(
        mrgp.Dataset([seen]), x[:, 1] >= 2, 4.0, {"kind": np.array(list("aaaabbbbccccdddd"))}
    )
    day = case.means["day"]
    np.testing.assert_allclose(day.y, [(9 + 10 + 11) / 3, 13.5])
    np.testing.assert_allclose(np.asarray(day.support.moment)[0, :2], [(1 + 2 + 3) / 3, 2.0])
    assert covariates_of(case.data["source"].support)["kind"].tolist() == list("aaaabbbb")
    # What could not be learned is the most frequent category.
    assert covariates_of(day.support)["kind"].tolist() == ["a", "a"]


def test_a_field_has_unit_variance_and_its_lengthscales():
    rng = np.random.default_rng(0)
    draws = np.stack(
        [
            field(rng, (5.0, 1.0), "smooth")(np.array([[0, 0], [5.0, 0], [0, 1.0]]))
            for _ in range(800)
        ]
    )
    correlation = np.corrcoef(draws.T)[0]
    assert draws.var() == pytest.approx(1.0, rel=0.1)
    np.testing.assert_allclose(correlation[1:], np.exp(-0.5), atol=0.08)


def test_a_disguise_changes_names_dates_places_and_units_alone():
    plain, other = (gauntlet("0", "stuck", disguised=d) for d in (False, True))
    assert set(other.data.sources).isdisjoint(plain.data.sources)
    assert set(other.data.tasks).isdisjoint(plain.data.tasks)
    np.testing.assert_allclose(other.y, 0.1 * plain.y)
    mine, theirs = plain.support.centres, other.support.centres
    np.testing.assert_allclose(theirs, mine * [1.0, -2.5, 2.5] + [8760.0, 0.0, 0.0])
    lower, upper = other.data["source2"].support.bounds
    assert np.all(np.asarray(lower) <= np.asarray(upper))
    np.testing.assert_allclose(other.means["day"].y, 0.1 * plain.means["day"].y)


@pytest.mark.parametrize(
    "world", ["stuck", pytest.param("london", marks=[RECORDED, pytest.mark.thorough])]
)
def test_rules_see_through_a_disguise(world):
    start = gauntlet_starts(world)[0]
    plain, other = (gauntlet(start, world, disguised=d) for d in (False, True))
    for rule in ("inverse", "kriging", "regression"):
        mine, theirs = (score_rule(rule, case).rows[0] for case in (plain, other))
        for name in ("rmse", "crps", "rmse_day", "cv_rmse"):
            assert theirs[name] == pytest.approx(0.1 * mine[name], rel=1e-4)
        assert theirs["coverage_95"] == pytest.approx(mine["coverage_95"], abs=0.005)


def test_sets_starts_and_disguises_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="no set is named 'mars'; the sets are"):
        gauntlet_starts("mars")
    with pytest.raises(ValueError, match="no start of 'noise' is named '7'"):
        gauntlet("7", "noise")
    with pytest.raises(ValueError, match="covariates of its supports cannot be disguised"):
        gauntlet("0", "polygons", disguised=True)
    assert len(SETS) == 19


@pytest.mark.thorough
@pytest.mark.parametrize("world", ["noise", "offset"])
def test_the_choice_knows_no_names_places_dates_or_units(world):
    choices, scores = [], []
    for disguised in (False, True):
        case = gauntlet("0", world, disguised=disguised)
        choice = mrgp.choose(case.data, (case.target, case.task))
        fit = mrgp.fit(choice.recipe, case.data, weights=choice.weights, progress=None)
        pred = mrgp.predict(fit, case.support, task=case.task, source=case.target, noise=True)
        choices.append(plainly(choice.recipe))
        scores.append(mrgp.evaluate(pred, case.y))
    assert choices[0] == choices[1]
    assert scores[1]["rmse"] == pytest.approx(0.1 * scores[0]["rmse"], rel=0.02)
    assert scores[1]["crps"] == pytest.approx(0.1 * scores[0]["crps"], rel=0.02)


def plainly(recipe):
    """Return a recipe in words, without the names of sources."""
    text = repr(recipe)
    for k, name in enumerate(("stations", "cells")):
        text = text.replace(f"'{name}'", f"'source{k + 1}'")
    return text
