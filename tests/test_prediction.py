"""Prediction on any support: alone or in a batch, chunked, joint, noisy, by source."""

import numpy as np
import pytest

import mrgp
from mrgp.models import answers


@pytest.fixture(scope="module")
def fit():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 6, (15, 1))
    lower = np.arange(0.0, 6.0)[:, None]
    data = mrgp.Dataset(
        [
            mrgp.Observations(
                mrgp.points(x, inputs="hour"),
                np.sin(x[:, 0]),
                task="no2",
                name="site",
                units="ug/m3",
            ),
            mrgp.Observations(
                mrgp.boxes(lower, lower + 1), np.sin(lower[:, 0] + 0.5), task="no2", name="model"
            ),
        ]
    )
    quick = mrgp.LBFGS(max_steps=15, starts=1, candidates=0)
    return mrgp.fit(mrgp.MRGP(bias="offset"), data, optimiser=quick)


X = np.linspace(-1, 7, 13)[:, None]


def test_a_point_is_the_same_alone_in_a_batch_and_in_another_order(fit):
    batch = mrgp.predict(fit, mrgp.points(X))
    order = np.random.default_rng(1).permutation(len(X))
    shuffled = mrgp.predict(fit, mrgp.points(X[order]))
    alone = [mrgp.predict(fit, mrgp.points(row[None])) for row in X[:4]]
    np.testing.assert_allclose(shuffled.mean, batch.mean[order], atol=1e-10)
    np.testing.assert_allclose(shuffled.variance, batch.variance[order], atol=1e-10)
    np.testing.assert_allclose([p.mean[0] for p in alone], batch.mean[:4], atol=1e-10)
    np.testing.assert_allclose([p.variance[0] for p in alone], batch.variance[:4], atol=1e-10)


def test_chunks_change_nothing(fit, monkeypatch):
    many = mrgp.points(np.linspace(0, 6, 150)[:, None])
    whole = mrgp.predict(fit, many)
    monkeypatch.setattr(answers, "LARGEST_CHUNK", 64)
    pieces = mrgp.predict(fit, many)
    np.testing.assert_allclose(pieces.mean, whole.mean, atol=1e-12)
    np.testing.assert_allclose(pieces.variance, whole.variance, atol=1e-12)


def test_joint_prediction_agrees_with_the_marginals_and_is_positive(fit):
    joint, marginal = (mrgp.predict(fit, mrgp.points(X), joint=j) for j in (True, False))
    np.testing.assert_allclose(np.diag(joint.covariance), marginal.variance, atol=1e-10)
    assert np.linalg.eigvalsh(joint.covariance).min() > -1e-8
    draws = joint.sample(3, 20_000)
    np.testing.assert_allclose(
        draws.mean(0), joint.mean, atol=5 * joint.std.max() / np.sqrt(20_000)
    )
    scale = joint.variance.max()
    np.testing.assert_allclose(np.cov(draws.T), joint.covariance, atol=0.05 * scale)


def test_the_variance_of_a_mean_is_the_mean_of_the_joint_covariance(fit):
    x = (np.arange(200) + 0.5) / 200 * 2 + 1
    joint = mrgp.predict(fit, mrgp.points(x[:, None]), joint=True)
    box = mrgp.predict(fit, mrgp.intervals([1.0], [3.0]))
    assert box.mean[0] == pytest.approx(joint.mean.mean(), abs=1e-4)
    assert box.variance[0] == pytest.approx(joint.covariance.mean(), rel=1e-3)


def test_noise_and_bias_belong_to_a_source(fit):
    p = fit.parameters()
    latent = mrgp.predict(fit, mrgp.points(X))
    site = mrgp.predict(fit, mrgp.points(X), source="site", noise=True)
    model = mrgp.predict(fit, mrgp.points(X), source="model", noise=True, joint=True)
    np.testing.assert_allclose(site.variance, latent.variance + p["noise_variance[site]"])
    np.testing.assert_allclose(model.mean, latent.mean + p["offset[model]"])
    np.testing.assert_allclose(
        model.variance, latent.variance + p["noise_variance[model]"], atol=1e-9
    )
    assert latent.units == "ug/m3"
    assert "no2 as site reports it" in repr(site)


def test_a_known_noise_is_used_for_new_observations():
    x = np.arange(6.0)[:, None]
    seen = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]), noise_variance=np.full(6, 0.3))
    quick = mrgp.LBFGS(max_steps=5, starts=1)
    fit = mrgp.fit(mrgp.MRGP(), mrgp.Dataset([seen]), optimiser=quick)
    a, b = (mrgp.predict(fit, mrgp.points(x), noise=n) for n in (True, False))
    np.testing.assert_allclose(a.variance, b.variance + 0.3)


def test_totals_scale_with_the_measure(fit):
    mean = mrgp.predict(fit, mrgp.intervals([1.0], [4.0]))
    total = mrgp.predict(fit, mrgp.intervals([1.0], [4.0], kind="sum"))
    assert total.mean[0] == pytest.approx(3 * mean.mean[0])
    assert total.std[0] == pytest.approx(3 * mean.std[0])


def test_nothing_to_predict_gives_nothing(fit):
    empty = mrgp.predict(fit, mrgp.points(np.zeros((0, 1))))
    assert len(empty) == 0
    assert "no regions" in repr(empty)


@pytest.mark.usefixtures("as_users_see_it")
def test_wrong_calls_name_what_there_is(fit):
    here = mrgp.points(X)
    with pytest.raises(TypeError, match=r"Call mrgp.fit\(model, data\) first"):
        mrgp.predict(mrgp.MRGP(), here)
    with pytest.raises(TypeError, match=r"a support such as mrgp.points\(x\)"):
        mrgp.predict(fit, X)
    with pytest.raises(ValueError, match=r"no task is named 'pm10'; the fit has \('no2',\)"):
        mrgp.predict(fit, here, task="pm10")
    with pytest.raises(ValueError, match=r"no source of task 'no2' is named 'sat'; it has"):
        mrgp.predict(fit, here, source="sat")
    with pytest.raises(ValueError, match="noise=True needs source="):
        mrgp.predict(fit, here, noise=True)
    with pytest.raises(
        ValueError, match=r"the support has 2 inputs, but the fit has 1: \('hour',\)"
    ):
        mrgp.predict(fit, mrgp.points([[0.0, 1.0]]))
    with pytest.raises(ValueError, match=r"inputs are \('day',\), but the fit's are \('hour',\)"):
        mrgp.predict(fit, mrgp.points(X, inputs="day"))
    with pytest.raises(ValueError, match="at most 5000 regions"):
        mrgp.predict(fit, mrgp.points(np.zeros((5001, 1))), joint=True)
