"""The facade keeps scikit-learn's contract, and says what the library itself says."""

import importlib.util
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mrgp
import mrgp.sklearn
from mrgp.sklearn import MRGPRegressor

# Compiling is what these tests wait for: few steps, and few shapes of data.
QUICK = mrgp.LBFGS(max_steps=5, starts=1, candidates=0)
ROWS = 24

pytestmark = pytest.mark.usefixtures("as_users_see_it")


def quick(model=None, **settings):
    return MRGPRegressor(model, optimiser=QUICK, **settings)


def table():
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 6, (ROWS, 2))
    return x, 30 + 4 * np.sin(x[:, 0]) + x[:, 1] + rng.normal(0, 0.1, ROWS)


def windows():
    """Values over windows of 0, 1 or 2 hours at two depths, in columns that stand apart."""
    start = np.repeat(np.arange(ROWS // 2), 2).astype(float)
    frame = pd.DataFrame({"until": start + np.arange(ROWS) % 3, "depth": np.arange(ROWS) % 2})
    frame["since"] = start
    return frame, 5 + np.sin(start / 2) + 0.3 * frame["depth"].to_numpy()


def two_sources():
    x, y = table()
    labels = np.array(["sensor", "satellite"] * (ROWS // 2))
    return x, y + np.where(labels == "satellite", 7.0, 0.0), labels


def plain(x, y, **settings):
    data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), y)])
    return mrgp.fit(mrgp.MRGP(**settings), data, optimiser=QUICK, progress=None)


def same(a, b):
    np.testing.assert_array_equal(a, b)


@pytest.mark.thorough
@parametrize_with_checks([quick()])
def test_a_check_of_scikit_learn_holds(estimator, check):
    check(estimator)


def test_it_is_the_library_on_points():
    x, y = table()
    new = x[:5] + 0.1
    fitted = quick().fit(x, y)
    pred = mrgp.predict(plain(x, y), mrgp.points(new), joint=True)
    alone = mrgp.predict(fitted.fit_, mrgp.points(new))
    same(fitted.predict(new, return_std=True), (alone.mean, alone.std))
    same(fitted.predict(new), alone.mean)
    mean, covariance = fitted.predict(new, return_cov=True)
    same(mean, pred.mean)
    same(covariance, pred.covariance)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), alone.std, rtol=1e-6)
    same(fitted.sample_y(new, n_samples=3, random_state=5), pred.sample(5, 3).T)
    assert fitted.score(x, y) == r2_score(y, fitted.predict(x))


def test_noise_is_asked_of_the_library():
    x, y = table()
    fitted = quick().fit(x, y)
    _, sd = fitted.predict(x, return_std=True)
    noisy = mrgp.predict(fitted.fit_, fitted.to_support(x), noise=True)
    noise = fitted.fit_.parameters()["noise_variance[source]"]
    np.testing.assert_allclose(noisy.variance, sd**2 + noise)


def test_the_default_fits_a_smooth_function():
    x = np.linspace(0, 6, ROWS + 1)[:, None]
    fitted = MRGPRegressor().fit(x[::2], np.sin(x[::2, 0]))
    mean, sd = fitted.predict(x, return_std=True)
    assert fitted.fit_.status.code == "converged"
    assert np.abs(mean - np.sin(x[:, 0])).max() < 0.05
    assert np.all(sd < 0.1)


def test_names_of_columns_are_names_of_inputs():
    x, y = table()
    frame = pd.DataFrame(x, columns=["east", "north"])
    kernel = mrgp.RBF(dims="east") + mrgp.Linear(dims="north")
    fitted = quick(mrgp.MRGP(kernel=kernel)).fit(frame, y)
    assert list(fitted.feature_names_in_) == ["east", "north"]
    assert (fitted.n_features_in_, fitted.fit_.inputs) == (2, ("east", "north"))
    assert plain(x, y, kernel=mrgp.RBF(dims=0) + mrgp.Linear(dims=1)).history[-1] == pytest.approx(
        fitted.fit_.history[-1]
    )
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frame[["north", "east"]])


def test_regions_are_boxes():
    frame, y = windows()
    fitted = quick(regions={"time": ("since", "until")}).fit(frame, y)
    depth, since, until = (frame[name].to_numpy(float) for name in ("depth", "since", "until"))
    lower, upper = np.column_stack([depth, since]), np.column_stack([depth, until])
    support = mrgp.boxes(lower, upper, inputs=("depth", "time"))
    direct = mrgp.fit(
        mrgp.MRGP(), mrgp.Dataset([mrgp.Observations(support, y)]), optimiser=QUICK, progress=None
    )
    assert fitted.fit_.inputs == ("depth", "time")
    same(fitted.predict(frame), mrgp.predict(direct, support).mean)
    same(fitted.predict(frame, return_std=True)[1], mrgp.predict(direct, support).std)
    at = frame.assign(until=frame["since"])
    same(fitted.predict(at), mrgp.predict(direct, mrgp.points(lower)).mean)
    numbered = quick(regions={"time": (2, -3)}).fit(frame.to_numpy(), y)
    assert numbered.fit_.inputs == ("x2", "time")
    same(numbered.predict(frame.to_numpy()), fitted.predict(frame))


@pytest.mark.thorough
def test_regions_go_through_cross_validation():
    frame, y = windows()
    estimator = quick(regions={"time": ("since", "until")})
    folds = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(estimator, frame, y, cv=folds)
    train, test = next(iter(folds.split(frame)))
    first = clone(estimator).fit(frame.iloc[train], y[train])
    assert scores[0] == first.score(frame.iloc[test], y[test])
    assert scores.min() > 0.5


def test_sources_are_sources():
    x, y, labels = two_sources()
    recipe = mrgp.MRGP(bias="offset", target="sensor")
    fitted = quick(recipe).fit(x, y, sources=labels)
    data = mrgp.Dataset(
        [
            mrgp.Observations(mrgp.points(x[labels == name]), y[labels == name], name=name)
            for name in ("satellite", "sensor")
        ]
    )
    direct = mrgp.fit(recipe, data, optimiser=QUICK, progress=None)
    said = {name: mrgp.predict(direct, mrgp.points(x), source=name) for name in data.sources}
    same(fitted.predict(x), mrgp.predict(direct, mrgp.points(x)).mean)
    same(fitted.predict(x, sources="satellite"), said["satellite"].mean)
    mean, sd = fitted.predict(x, return_std=True, sources=labels)
    for name in data.sources:
        same(mean[labels == name], said[name].mean[labels == name])
        same(sd[labels == name], said[name].std[labels == name])
    assert fitted.score(x, y, sources=labels) == r2_score(y, mean) > fitted.score(x, y)


def counts():
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(0, 6, (ROWS, 1)), 0)
    people = rng.uniform(5, 40, ROWS)
    return x, rng.poisson(people * np.exp(np.sin(x[:, 0]) - 1)).astype(float), people


def test_counts_are_those_of_the_library():
    x, y, people = counts()
    fitted = quick(likelihood=mrgp.Poisson()).fit(x, y, exposure=people)
    seen = mrgp.Observations(mrgp.points(x), y, likelihood="poisson", exposure=people)
    direct = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), optimiser=QUICK, progress=None)
    rate = mrgp.predict(direct, mrgp.points(x))
    same(fitted.predict(x, return_std=True), (rate.mean, rate.std))
    cases = mrgp.predict(direct, mrgp.points(x), source="source", exposure=people)
    expected, sd = fitted.predict(x, return_std=True, exposure=people)
    np.testing.assert_allclose(expected, cases.mean, rtol=1e-12)
    np.testing.assert_allclose(sd, cases.std, rtol=1e-12)
    mean, covariance = fitted.predict(x, return_cov=True, exposure=people)
    np.testing.assert_allclose(mean, expected, rtol=1e-6)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), sd, rtol=1e-6)
    assert fitted.score(x, y, exposure=people) == r2_score(y, expected) > 0.5


def test_sources_scatter_each_in_its_way_and_successes_have_trials():
    x, y, people = counts()
    labels = np.array(["register", "clinic"] * (ROWS // 2))
    values = np.where(labels == "register", y, y / people + 0.05)
    fitted = quick(likelihood={"register": "poisson", "clinic": "log_normal"}).fit(
        x, values, sources=labels, exposure=np.where(labels == "register", people, 1.0)
    )
    scatter = {source: made.name for (source, _), made in fitted.fit_.likelihoods.items()}
    assert scatter == {"clinic": "log_normal", "register": "poisson"}
    shares = quick(likelihood="binomial").fit(x, np.minimum(y, 50), trials=50)
    share = shares.predict(x)
    assert np.all((share > 0) & (share < 1))
    np.testing.assert_allclose(shares.predict(x, trials=50), 50 * share)
    for settings, given, text in (
        ({"likelihood": {"other": "poisson"}}, {"sources": labels}, "names 'other', which is no"),
        ({"likelihood": "poisson"}, {"exposure": people[:3]}, r"one for each of the 24 rows.*\(3,"),
        ({"likelihood": "zebra"}, {}, "likelihood= is one of"),
    ):
        with pytest.raises(ValueError, match=text):
            quick(**settings).fit(x, y, **given)


@pytest.mark.thorough
def test_exposures_are_routed_through_a_search():
    x, y, people = counts()
    halves = [(np.arange(0, ROWS, 2), np.arange(1, ROWS, 2))]
    grid = {"likelihood": ["poisson", "negative_binomial"]}
    with config_context(enable_metadata_routing=True):
        estimator = quick().set_fit_request(exposure=True).set_score_request(exposure=True)
        search = GridSearchCV(estimator, grid, cv=halves).fit(x, y, exposure=people)
    train, test = halves[0]
    first = quick(likelihood="poisson").fit(x[train], y[train], exposure=people[train])
    found = search.cv_results_["split0_test_score"][0]
    assert found == first.score(x[test], y[test], exposure=people[test])


def test_the_order_of_rows_does_not_choose_the_target():
    x, y, labels = two_sources()
    recipe = mrgp.MRGP(bias="offset")
    first, second = (
        quick(recipe).fit(x[rows], y[rows], sources=pd.Series(labels[rows]))
        for rows in (np.arange(ROWS), np.arange(ROWS)[::-1])
    )
    assert first.fit_.sources == second.fit_.sources == ("satellite", "sensor")
    np.testing.assert_allclose(first.predict(x), second.predict(x), rtol=1e-6)


def test_a_joint_answer_is_of_one_source():
    x, y, labels = two_sources()
    fitted = quick(mrgp.MRGP(bias="offset")).fit(x, y, sources=labels)
    mean, covariance = fitted.predict(x, return_cov=True, sources="sensor")
    joint = mrgp.predict(fitted.fit_, mrgp.points(x), source="sensor", joint=True)
    same(mean, joint.mean)
    same(covariance, joint.covariance)
    with pytest.raises(ValueError, match=r"one source.*'satellite', 'sensor'.*one source at a"):
        fitted.sample_y(x, sources=labels)
    with pytest.raises(ValueError, match="no source of task 'value' is named 'other'"):
        fitted.predict(x, sources="other")


def test_weights_are_those_of_the_library():
    x, y, labels = two_sources()
    fitted = quick(weights={"satellite": 0.5}).fit(x, y, sources=labels)
    assert fitted.fit_.weights == {("satellite", "value"): 0.5, ("sensor", "value"): 1.0}


@pytest.mark.thorough
def test_kernels_are_chosen_in_a_pipeline():
    x, y = table()
    models = [mrgp.MRGP(kernel=k) for k in (mrgp.Linear(), mrgp.RBF())]
    pipe = make_pipeline(StandardScaler(), quick())
    search = GridSearchCV(pipe, {"mrgpregressor__model": models}, cv=3).fit(x, y)
    assert search.best_params_["mrgpregressor__model"].kernel == mrgp.RBF()
    scaled = StandardScaler().fit_transform(x)
    direct = mrgp.predict(plain(scaled, y, kernel=mrgp.RBF()), mrgp.points(scaled))
    same(search.predict(x), direct.mean)


@pytest.mark.thorough
def test_sources_are_routed_through_a_search():
    x, y, labels = two_sources()
    halves = [(np.arange(12), np.arange(12, 24)), (np.arange(12, 24), np.arange(12))]
    grid = {"model": [mrgp.MRGP(), mrgp.MRGP(bias="offset", target="sensor")]}
    with config_context(enable_metadata_routing=True):
        estimator = quick().set_fit_request(sources=True).set_score_request(sources=True)
        search = GridSearchCV(estimator, grid, cv=halves).fit(x, y, sources=labels)
    assert search.best_params_["model"].bias == "offset"
    train, test = halves[0]
    first = quick(grid["model"][1]).fit(x[train], y[train], sources=labels[train])
    found = search.cv_results_["split0_test_score"][1]
    assert found == first.score(x[test], y[test], sources=labels[test])


def test_a_pickle_predicts_the_same():
    frame, y = windows()
    fitted = quick(regions={"time": ("since", "until")}).fit(frame, y)
    again = pickle.loads(pickle.dumps(fitted))
    same(again.predict(frame, return_std=True), fitted.predict(frame, return_std=True))
    same(again.sample_y(frame), fitted.sample_y(frame))
    assert again.fit_.summary() == fitted.fit_.summary()


def test_a_clone_fits_the_same():
    x, y = table()
    search = mrgp.LBFGS(max_steps=5, starts=1, candidates=3)
    model = mrgp.MRGP(kernel=2.0 * mrgp.RBF() + mrgp.Linear(dims=0))
    first = MRGPRegressor(model, optimiser=search, key=4).fit(x, y)
    other = clone(first)
    assert not hasattr(other, "fit_")
    same(other.fit(x, y).predict(x), first.predict(x))


def test_draws_follow_the_random_state():
    x, y = table()
    fitted = quick().fit(x, y)
    one, two = (fitted.sample_y(x, 2, np.random.RandomState(1)) for _ in range(2))
    same(one, two)
    assert not np.array_equal(one, fitted.sample_y(x, 2, None))


def test_a_constant_y_is_predicted():
    x, _ = table()
    mean, sd = MRGPRegressor().fit(x, np.full(ROWS, 30.0)).predict(x, return_std=True)
    np.testing.assert_allclose(mean, 30.0, atol=1e-6)
    assert np.isfinite(sd).all()


def test_a_constant_column_changes_nothing():
    x, y = table()
    dull = np.column_stack([x[:, 0], np.full(ROWS, 2.0)])
    expected = MRGPRegressor().fit(x[:, :1], y).predict(x[:, :1], return_std=True)
    found = MRGPRegressor().fit(dull, y).predict(dull, return_std=True)
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_duplicated_rows_are_averaged():
    x, y = table()
    half = ROWS // 2
    twice = np.concatenate([x[:half], x[:half]])
    mean = MRGPRegressor().fit(twice, np.concatenate([y[:half] - 1, y[:half] + 1])).predict(twice)
    np.testing.assert_allclose(mean[:half], mean[half:])
    assert np.abs(mean[:half] - y[:half]).max() < 1


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"regions": [("since", "until")]}, TypeError, r"maps inputs to pairs.*got \[\('since'"),
        ({"regions": {"time": "since"}}, ValueError, "two columns for 'time'.*got 'since'"),
        ({"regions": {"time": ("since", "end")}}, ValueError, "no column 'end' to take; the col"),
        ({"regions": {"time": ("since", 3)}}, ValueError, "no column 3 to take"),
        ({"regions": {"t": ("since", "until"), "u": (0, 1)}}, ValueError, "has a column twice"),
        ({"regions": {"depth": ("since", "until")}}, ValueError, "name of its own.*Rename one"),
        ({"regions": {"t": ("until", "since")}}, ValueError, "'t' is below the lower in 16 of 24 "),
        ({"model": mrgp.MRGP}, TypeError, r"must be a model such as mrgp.MRGP\(\).*Write MRGP"),
        ({"optimiser": "adam"}, TypeError, r"optimiser= takes mrgp.LBFGS\(\)"),
        ({"key": "one"}, TypeError, "key= takes an integer"),
    ],
)
def test_settings_are_refused_when_fitted(settings, error, text):
    frame, y = windows()
    estimator = MRGPRegressor(**({"optimiser": QUICK} | settings))
    with pytest.raises(error, match=text):
        estimator.fit(frame, y)
    with pytest.raises(NotFittedError):
        estimator.predict(frame)


@pytest.mark.parametrize(
    ("sources", "text"),
    [
        (["a", "b"], r"a label for each of the 24 rows; got shape \(2,\)"),
        ([None] + ["a"] * (ROWS - 1), "no label in 1 of 24 rows, first in row 0. Name the source"),
    ],
)
def test_wrong_labels_are_refused(sources, text):
    with pytest.raises(ValueError, match=text):
        quick().fit(*table(), sources=sources)


def test_wrong_tables_are_refused():
    x, y = table()
    with pytest.raises(ValueError, match="minimum of 2 is required by MRGPRegressor"):
        quick().fit(x[:1], y[:1])
    with pytest.raises(ValueError, match="Input y contains NaN"):
        quick().fit(x, np.where(y > 30, np.nan, y))
    with pytest.raises(RuntimeError, match="sd or a covariance; got return_std=True and"):
        quick().fit(x, y).predict(x, return_std=True, return_cov=True)


def test_scaled_sides_are_refused():
    frame, y = windows()
    pipe = make_pipeline(StandardScaler(), quick(regions={"time": (2, 0)}))
    with pytest.raises(ValueError, match="leave sides out of scalers"):
        pipe.fit(frame, y)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    spec = importlib.util.spec_from_file_location("without", mrgp.sklearn.__file__)
    with pytest.raises(ImportError, match=r"needs scikit-learn.*pip install 'mrgp\[sklearn\]'"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
