"""Cross-validation of models on the same folds."""

import numpy as np
import pytest

import mrgp


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 10.0, 60)
    y = 3 + np.sin(1.5 * x) + 0.1 * rng.normal(size=60)
    fine = mrgp.Observations(mrgp.points(x[:, None], inputs="time"), y, name="fine", task="u")
    cells = mrgp.intervals(np.arange(0.0, 10.0), np.arange(1.0, 11.0), inputs="time")
    means = 3 - np.diff(np.cos(1.5 * np.arange(11.0))) / 1.5
    return mrgp.Dataset([fine, mrgp.Observations(cells, means, name="coarse", task="u")])


MODELS = {"smooth": mrgp.MRGP(mrgp.RBF()), "rough": mrgp.MRGP(mrgp.Matern12())}


@pytest.fixture(scope="module")
def found(data):
    return mrgp.compare(MODELS, data, "time", number=3, target="fine", progress=None)


def test_every_model_is_scored_on_every_fold_by_hand(found, data):
    assert len(found.scores) == 6
    x = np.asarray(data["fine"].support.bounds[0])[:, 0]
    held = np.flatnonzero(np.unique(x, return_inverse=True)[1] * 3 // 60 == 1)
    left = np.setdiff1d(np.arange(60), held)
    train = mrgp.Dataset([data["fine"][left], data["coarse"]])
    fit = mrgp.fit(MODELS["rough"], train, progress=None)
    pred = mrgp.predict(fit, data["fine"].support[held], source="fine", noise=True)
    mine = mrgp.evaluate(pred, data["fine"].y[held])
    row = found.scores.query("model == 'rough' and fold == 1").iloc[0]
    for name in ("crps", "rmse", "coverage_95"):
        assert row[name] == pytest.approx(mine[name], rel=1e-6)
    assert row["n"] == 20


def test_the_table_is_ranked_with_paired_standard_errors(found):
    table = found.table
    assert list(table.index) == ["smooth", "rough"]
    assert found.best == "smooth"
    by_model = {m: found.scores.query("model == @m")["crps"].to_numpy() for m in MODELS}
    difference = by_model["rough"] - by_model["smooth"]
    assert table.loc["rough", "behind"] == pytest.approx(difference.mean())
    assert table.loc["rough", "behind_se"] == pytest.approx(difference.std(ddof=1) / np.sqrt(3))
    se = by_model["rough"].std(ddof=1) / np.sqrt(3)
    assert table.loc["rough", "crps_se"] == pytest.approx(se)
    assert table.loc["smooth", "behind"] == 0
    text = str(found)
    assert text.startswith("3 folds (time) of source 'fine', task 'u', by crps:")
    assert text.index("smooth") < text.index("rough")


def test_a_model_that_fails_is_named_with_its_reason(data):
    models = {"fine": MODELS["smooth"], "wrong": mrgp.MRGP(target="satellite")}
    folds = {"number": 3, "target": "fine", "progress": None}
    found = mrgp.compare(models, data, "time", **folds)
    assert list(found.table.index) == ["fine"]
    assert "target='satellite' is no source" in found.failed["wrong"]
    assert "wrong has no scores: fold 0:" in str(found)
    with pytest.raises(ValueError, match="no model could be scored"):
        mrgp.compare({"wrong": models["wrong"]}, data, number=2, progress=None)


def test_what_compare_takes_is_checked(data):
    with pytest.raises(ValueError, match="by= is one of"):
        mrgp.compare(MODELS, data, by="bias")
    with pytest.raises(TypeError, match="models= is a mapping from names to recipes"):
        mrgp.compare(mrgp.MRGP(), data)
    with pytest.raises(ValueError, match="models= is empty"):
        mrgp.compare([], data)
    with pytest.raises(TypeError, match="takes a Dataset as second argument; got list"):
        mrgp.compare(MODELS, [data])


@pytest.mark.thorough
def test_models_of_a_list_are_named_by_their_class(data):
    brief = [mrgp.MRGP(mrgp.RBF()), mrgp.MRGP(mrgp.Matern12()), mrgp.VBAgg(mrgp.RBF())]
    found = mrgp.compare(brief, data, number=2, by="mse", progress=None)
    assert set(found.table.index) == {"MRGP", "MRGP-2", "VBAgg"}
    assert {"mse", "mse_se", "rmse", "coverage_95"} <= set(found.table)
    assert found.table["mse"].is_monotonic_increasing


def test_known_noise_is_that_of_each_value_held_out():
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 10.0, 60)
    noise = np.where(np.arange(60) % 2, 1.0, 1e-4)
    y = 3 + np.sin(x) + np.sqrt(noise) * rng.normal(size=60)
    seen = mrgp.Observations(mrgp.points(x[:, None]), y, noise_variance=noise)
    data = mrgp.Dataset([seen])
    found = mrgp.compare({"one": mrgp.MRGP(mrgp.RBF())}, data, number=3, progress=None)
    alone = mrgp.fit(mrgp.MRGP(mrgp.RBF()), data, progress=None).leave_one_out().scores()
    assert found.table.loc["one", "nlpd"] == pytest.approx(alone["overall"]["nlpd"], abs=0.3)
    # One noise for all would cover all exact values and too few of the others.
    assert found.table.loc["one", "nlpd"] < 0.2
