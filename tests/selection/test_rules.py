"""Simple rules: hand-made cases, missing values, one place, one time, no time, regions."""

import dataclasses

import numpy as np
import pytest

import mrgp
from mrgp.selection import RULES, best_rule, rules_for
from mrgp.selection.features import covariates_of
from mrgp.selection.kriging import variogram
from mrgp.supports.covariates import Column, Field

INPUTS = ("hour", "east", "north")
SQUARE = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])


def network(values, places=SQUARE, **more):
    """Return values [places, hours] as a data set."""
    values = np.asarray(values, float)
    hours = np.arange(float(values.shape[1]))
    x = np.concatenate([np.column_stack([hours, np.tile(p, (len(hours), 1))]) for p in places])
    seen = mrgp.Observations(mrgp.points(x, inputs=INPUTS), values.ravel(), name="sites")
    return mrgp.Dataset([seen, *more.get("others", ())])


def at(*rows):
    return mrgp.points(np.array(rows, float), inputs=INPUTS)


def said(name, data, support, **more):
    columns = more.pop("there", None)
    fitted = RULES[name].fit(data, **more)
    return fitted.predict(support, **({} if columns is None else {"covariates": columns}))


VALUES = [[0.0, 10.0, 1.0], [4.0, 14.0, 3.0], [2.0, 12.0, 5.0], [6.0, 16.0, np.nan]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mean", [3.0, 13.0, 3.0]),
        ("nearest", [4.0, 14.0, 3.0]),
        ("linear", [3.5, 13.5, 3.0]),
    ],
)
def test_rules_at_a_place_hour_by_hour(name, expected):
    place = (1.5, 0.25)
    mean, sd = said(name, network(VALUES), at(*[(h, *place) for h in range(3)]))
    expected = np.array(expected)
    if name == "linear":
        # On the square the values are a plane; in the last hour, of the triangle that is left.
        expected = np.array([0 + 2 * 1.5 + 0.25, 10 + 3 + 0.25, 1 + 1.5 + 2 * 0.25])
    np.testing.assert_allclose(mean, expected)
    assert np.all(sd > 0)


@pytest.mark.parametrize(("name", "power"), [("inverse", 1), ("inverse-2", 2)])
def test_inverse_distances(name, power):
    place = np.array([0.5, 0.25])
    mean, _ = said(name, network(VALUES), at(*[(h, *place) for h in range(3)]))
    values = np.array(VALUES)
    weight = np.linalg.norm(SQUARE - place, axis=1) ** -power
    expected = [np.average(v[np.isfinite(v)], weights=weight[np.isfinite(v)]) for v in values.T]
    np.testing.assert_allclose(mean, expected)


@pytest.mark.parametrize("name", ["nearest", "inverse", "inverse-2", "linear", "kriging"])
def test_at_a_site_itself_its_own_value_is_said(name):
    mean, _ = said(name, network(VALUES), at((0, 2, 0), (1, 0, 2)))
    np.testing.assert_allclose(mean, [4.0, 12.0], atol=1e-6)


def test_kriging_solves_the_ordinary_system():
    rng = np.random.default_rng(1)
    places = rng.uniform(0, 10, (12, 2))
    values = np.sin(places[:, :1]) + 0.3 * places[:, 1:] + rng.normal(size=(12, 30))
    data = network(values, places)
    fitted = RULES["kriging"].fit(data)
    gamma = variogram(fitted.view.table)
    wanted = np.array([3.0, 4.0])
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    system = np.block([[gamma(apart), np.ones((12, 1))], [np.ones((1, 12)), np.zeros((1, 1))]])
    right = np.append(gamma(np.linalg.norm(places - wanted, axis=1)), 1.0)
    weight = np.linalg.solve(system, right)[:12]
    mean, _ = fitted.predict(at((7, *wanted)))
    np.testing.assert_allclose(mean, weight @ values[:, 7], rtol=1e-6)


def test_one_variogram_serves_all_times_and_follows_the_field():
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 10, (60, 2))
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    root = np.linalg.cholesky(4 * np.exp(-apart / 2.0) + 1e-9 * np.eye(60))
    values = root @ rng.normal(size=(60, 400)) + rng.normal(size=(60, 400))
    found = variogram(RULES["mean"].fit(network(values, places)).view.table)
    assert found.nugget == pytest.approx(1.0, rel=0.25)
    assert found.partial == pytest.approx(4.0, rel=0.15)
    assert found.reach == pytest.approx(2.0, rel=0.3)


def test_regression_uses_numbers_categories_and_what_other_sources_say():
    lower = np.array([[h, e, 0.0] for h in (0.0, 1.0) for e in (0.0, 1.0)])
    cells = mrgp.Observations(
        mrgp.boxes(lower, lower + [0.0, 1.0, 4.0], inputs=INPUTS), [1.0, 5.0, 2.0, 9.0], name="ctm"
    )
    places = np.array([[0.2, 0.0], [0.7, 3.0], [1.4, 1.0], [1.9, 2.0], [0.5, 2.0], [1.1, 3.0]])
    ctm = np.array([[1.0, 2.0], [1.0, 2.0], [5.0, 9.0], [5.0, 9.0], [1.0, 2.0], [5.0, 9.0]])
    kinds, road = np.array(list("abbaab")), np.array([0.0, 1.0, 5.0, 2.0, 3.0, 1.0])
    y = 3 + 2 * ctm + 0.5 * road[:, None] + np.where(kinds == "a", 4.0, 0.0)[:, None]
    data = network(y, places, others=[cells])
    columns = {"kind": np.repeat(kinds, 2), "road": np.repeat(road, 2)}
    there = {"kind": ["b", "a"], "road": [4.0, 0.0]}
    support = at((0, 1.5, 1.0), (1, 0.1, 0.1))
    mean, _ = said("regression", data, support, covariates=columns, there=there)
    np.testing.assert_allclose(mean, [3 + 10 + 2 + 0, 3 + 4 + 0 + 4], rtol=1e-3)
    with pytest.raises(ValueError, match="fitted with the covariate 'kind', which is not given"):
        RULES["regression"].fit(data, covariates=columns).predict(support)


def test_type_is_the_mean_of_the_hour_and_a_level_although_kinds_are_missing_at_times():
    hours = np.array([0.0, 10.0, 20.0])
    level = np.array([0.0, 6.0, 0.0, 6.0])
    values = hours + level[:, None]
    values[1, 0] = np.nan
    columns = {"kind": np.repeat(["park", "kerb", "park", "kerb"], 3)}
    support = at((0, 1, 1), (1, 1, 1), (2, 1, 1))
    there = {"kind": ["kerb", "park", "mars"]}
    mean, _ = said("type", network(values), support, covariates=columns, there=there)
    np.testing.assert_allclose(mean[:2], [6.0, 10.0], rtol=1e-4)
    with pytest.raises(ValueError, match=r"'type' needs a category; source 'sites', task 'value'"):
        RULES["type"].fit(network(values))


def test_covariates_need_one_value_for_each_row():
    with pytest.raises(
        ValueError, match=r"covariate 'kind' has shape \(2,\); there are 12 regions"
    ):
        RULES["type"].fit(network(VALUES), covariates={"kind": ["a", "b"]})


def test_covariates_that_supports_know_are_features_and_no_places():
    x = np.column_stack([np.repeat(np.arange(6.0), 2), np.tile([0.0, 1.0], 6)])
    support = mrgp.points(x, inputs=("east", "time"))
    support = support.with_covariates(lambda z: z[:, 0] ** 2, "height")
    data = mrgp.Dataset([mrgp.Observations(support, 3 * x[:, 0] ** 2 + 1)])
    fitted = RULES["regression"].fit(data)
    query = mrgp.points([[2.5, 0.0]], inputs=("east", "time"))
    mean, _ = fitted.predict(query.with_covariates(lambda z: z[:, 0] ** 2, "height"))
    np.testing.assert_allclose(mean, [3 * 6.25 + 1], rtol=1e-4)
    assert fitted.view.table.values.shape == (6, 2)


@pytest.mark.parametrize("rule", [r for r in RULES.values() if not r.needs], ids=lambda r: r.name)
def test_one_place_one_time_no_time_and_missing_hours(rule):
    one = network([[1.0, 2.0, np.nan, 4.0]], [[0.0, 0.0]])
    mean, sd = rule.fit(one).predict(at((1, 5, 5), (2, 5, 5), (1.5, 0, 0)))
    np.testing.assert_allclose(mean[0], 2.0)
    assert np.isfinite(mean).all()
    assert np.isfinite(sd).all()
    hour = network([[1.0], [3.0], [2.0], [4.0]])
    assert np.isfinite(rule.fit(hour).predict(at((0, 1, 1)))[0]).all()
    curve = mrgp.Dataset([mrgp.Observations(mrgp.points([[0.0], [1.0], [2.0]]), [0.0, 1.0, 2.0])])
    mean, sd = rule.fit(curve).predict(mrgp.points([[1.2], [9.0]]))
    assert np.isfinite([mean, sd]).all()
    constant = network(np.ones((4, 2)))
    mean, sd = rule.fit(constant).predict(at((0, 1, 1.2)))
    np.testing.assert_allclose([mean[0], sd[0]], [1.0, 0.0], atol=1e-9)


def test_places_that_differ_by_rounding_are_one():
    places = np.array([[0.0, 0.0], [1000.0, 0.0], [0.0, 1000.0]])
    data = network([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], places)
    sites = data["sites"]
    x = np.asarray(sites.support.x).copy()
    x[1, 1] += 1e-4
    moved = mrgp.Dataset([sites.replace(support=mrgp.points(x, inputs=INPUTS))])
    assert RULES["mean"].fit(moved).view.table.values.shape == (3, 2)


def test_regions_without_time_are_seen_at_their_centres():
    lower = np.array([[i, j] for i in range(4) for j in range(4)], float)
    fine = mrgp.Observations(mrgp.boxes(lower, lower + 1), lower @ [1.0, 10.0], name="fine")
    data = mrgp.Dataset([fine])
    query = mrgp.boxes([[0.5, 0.5]], [[2.5, 2.5]])
    mean, _ = RULES["linear"].fit(data).predict(query)
    np.testing.assert_allclose(mean, [11.0])
    totals = fine.replace(support=mrgp.boxes(lower, lower + 1, kind="sum"))
    total, _ = (
        RULES["linear"]
        .fit(mrgp.Dataset([totals]))
        .predict(mrgp.boxes([[0.5, 0.5]], [[2.5, 2.5]], kind="sum"))
    )
    np.testing.assert_allclose(total, [44.0])


def test_windows_have_the_mean_of_their_hours_and_the_sd_of_mean_errors():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 48)) + rng.normal(size=(30, 1)) * 2
    data = network(values, rng.uniform(0, 5, (30, 2)))
    fitted = RULES["mean"].fit(data)
    hours = np.arange(24.0)
    nodes = np.column_stack([hours, np.full((24, 2), 2.0)])
    day = mrgp.nodes(nodes[None], np.full((1, 24), 1 / 24), inputs=INPUTS)
    box = mrgp.boxes([[0.0, 2.0, 2.0]], [[23.0, 2.0, 2.0]], inputs=INPUTS)
    hourly, sd = fitted.predict(at(*nodes))
    for region in (day, box):
        mean, spread = fitted.predict(region)
        np.testing.assert_allclose(mean, [hourly.mean()])
        # Levels of places stay, and hours average out.
        assert 2.0 < spread[0] < sd[0]


def test_the_sd_of_a_window_is_of_the_values_there_are_although_most_times_have_none():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 1)) * 2 + 0.5 * rng.normal(size=(40, 60))
    values[rng.uniform(size=values.shape) < 0.7] = np.nan
    fitted = RULES["mean"].fit(network(values, rng.uniform(0, 5, (40, 2))))
    hours = np.arange(0.0, 60.0, 6.0)
    nodes = np.column_stack([hours, np.full((10, 2), 2.0)])
    window = mrgp.nodes(nodes[None], np.ones((1, 10)), inputs=INPUTS)
    assert fitted.predict(window)[1][0] == pytest.approx(2.0, rel=0.2)
    # More times than anybody has values: that of single values.
    every = np.column_stack([np.arange(60.0), np.full((60, 2), 2.0)])
    long = mrgp.nodes(every[None], np.ones((1, 60)), inputs=INPUTS)
    assert fitted.predict(long)[1][0] == pytest.approx(fitted.rmse)


def test_the_best_rule_is_that_of_least_error_at_places_left_out():
    rng = np.random.default_rng(3)
    places = rng.uniform(0, 10, (40, 2))
    plane = places @ [1.0, 2.0]
    smooth = network(plane[:, None] + rng.normal(size=(1, 5)), places)
    best = best_rule(smooth)
    assert best.rule.name in ("linear", "kriging")
    assert best.rmse == min(best.scores.values()) == RULES[best.rule.name].fit(smooth).rmse
    noise = network(rng.normal(size=(40, 5)), places)
    assert best_rule(noise, folds=8).rule.name in ("mean", "inverse")
    assert [rule.name for rule in rules_for(noise)] == list(best.scores)
    kinds = {"kind": np.repeat(["a", "b"], 100)}
    level = network(np.repeat([[5.0], [0.0]], 20, 0) + rng.normal(size=(40, 5)), places)
    assert best_rule(level, covariates=kinds).rule.name in ("type", "regression")


def test_rules_do_not_know_names_directions_or_dates():
    rng = np.random.default_rng(5)
    places, values = rng.uniform(0, 10, (20, 2)), rng.normal(size=(20, 6))
    data = network(values, places)
    sites = data["sites"]
    x = np.asarray(sites.support.x) * [1.0, -3.0, 3.0] + [1000.0, 7.0, 0.0]
    moved = mrgp.points(x, inputs=("time", "b", "c"))
    other = mrgp.Dataset([mrgp.Observations(moved, 100 * sites.y, name="z", task="w")])
    mine, theirs = best_rule(data), best_rule(other)
    assert mine.rule == theirs.rule
    for name, score in mine.scores.items():
        assert theirs.scores[name] == pytest.approx(100 * score, rel=1e-6)


def test_a_region_has_the_category_that_most_of_it_has():
    codes = np.array([[3.0, 3.0, 3.0], [0.0, 2.0, 2.0], [-1.0, -1.0, 0.0]])
    weights = np.array([[0.1, 0.2, 0.7], [0.2, 0.4, 0.4], [0.3, 0.3, 0.4]])
    x = np.stack([np.arange(9.0).reshape(3, 3), codes], -1)
    field = Field(("type",), (), Column(("a", "b", "c", "d")))
    labels = {"covariates": (field,), "inputs": ("x1", "type")}
    inside = dataclasses.replace(mrgp.nodes(x, weights), **labels)
    assert covariates_of(inside)["type"].tolist() == ["d", "c", ""]
