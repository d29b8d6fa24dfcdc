"""The contract: a recipe and a model from outside the library, and what models answer."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import mrgp
from mrgp.data import Frame, Scaling
from mrgp.models import Components, Model, Recipe
from mrgp.parameters import partition, positive, real, unwrap


class ConstantField(eqx.Module):
    """y = L level + noise: nothing varies, but the level has a posterior."""

    prior_mean: Any
    noise_variance: Any
    variance: float = eqx.field(static=True)
    processes: tuple = eqx.field(static=True)

    linear = variational = composite = approximate = None
    maps = {}  # noqa: RUF012

    def _posterior(self, records):
        model = unwrap(self)
        precision, score = 1.0 / self.variance, model.prior_mean / self.variance
        for record in records:
            total = jnp.asarray(record.support.total)
            precision += jnp.sum(total**2) / model.noise_variance
            score += jnp.vdot(total, jnp.asarray(record.y)) / model.noise_variance
        return score / precision, 1.0 / precision

    def log_evidence(self, records):
        model = unwrap(self)
        residual = jnp.concatenate(
            [jnp.asarray(r.y) - model.prior_mean * jnp.asarray(r.support.total) for r in records]
        )
        total = jnp.concatenate([jnp.asarray(r.support.total) for r in records])
        covariance = self.variance * total[:, None] * total[None, :]
        covariance += model.noise_variance * jnp.eye(len(total))
        return -0.5 * (
            residual @ jnp.linalg.solve(covariance, residual)
            + jnp.linalg.slogdet(2 * jnp.pi * covariance)[1]
        )

    def condition(self, records):
        mean, variance = self._posterior(records)
        return {"mean": mean, "variance": variance}

    def predict(self, state, support, asked):
        total = np.asarray(support.total)
        spread = np.outer(total, total) if asked.joint else total**2
        return Components.gaussian(state["mean"] * total, state["variance"] * spread)

    def observation_noise(self, process):
        return float(self.noise_variance.value)

    def named(self):
        return {"level": self.prior_mean, "noise_variance": self.noise_variance}

    def report(self, scaling):
        found = {name: np.asarray(value.value) for name, value in self.named().items()}
        return found | {"level": np.asarray(found["level"] + scaling.offset[0])}

    def account(self, state):
        return f"one level, known to {float(np.sqrt(state['variance'])):.3g}"


@dataclasses.dataclass(frozen=True)
class ConstantRecipe:
    """A field that is the same everywhere."""

    variance: float = 10.0

    inner = None
    fitted = "whole"

    def sketch(self, data):
        return None

    def refuses(self, weights):
        return None if weights is None else "ConstantRecipe counts every value alike."

    def view(self, data):
        return data

    def frame(self, data):
        return Frame.of(data)

    def view_of(self, support):
        return support

    def build(self, data, key=0, frame=None):
        scaling = Scaling.of(data) if frame is None else frame.scaling
        noise = positive(0.5 * float(scaling.scale[0]) ** 2)
        return ConstantField(real(0.0), noise, self.variance, data.processes)


X = np.linspace(0.0, 6.0, 12)[:, None]
Y = 7.0 + 0.3 * np.random.default_rng(0).standard_normal(12)
TOTALS = mrgp.Observations(mrgp.intervals([0.0], [2.0], kind="sum"), [14.2], name="totals")
DATA = mrgp.Dataset([mrgp.Observations(mrgp.points(X), Y, name="sites", units="ppb"), TOTALS])


@pytest.fixture(scope="module")
def fit():
    return mrgp.fit(ConstantRecipe(), DATA)


def test_what_is_outside_fulfils_the_protocols():
    assert isinstance(ConstantRecipe(), Recipe)
    assert isinstance(ConstantRecipe().build(DATA), Model)


def test_an_outside_model_is_fitted_and_predicts_with_its_own_algebra(fit):
    assert fit.status.code == "converged"
    noise = float(fit.parameters()["noise_variance"])
    total = np.append(np.ones(12), 2.0)
    precision = 1 / 10.0 + total @ total / noise
    prior = float(fit.parameters()["level"])
    mean = (prior / 10.0 + np.append(Y, 14.2) @ total / noise) / precision
    at = mrgp.intervals([1.0], [4.0], kind="sum")
    found = mrgp.predict(fit, at)
    assert found.mean[0] == pytest.approx(3 * mean, rel=1e-8)
    assert found.variance[0] == pytest.approx(9 / precision, rel=1e-8)
    noisy = mrgp.predict(fit, mrgp.points(X), source="sites", noise=True, joint=True)
    np.testing.assert_allclose(noisy.variance, 1 / precision + noise, rtol=1e-8)
    np.testing.assert_allclose(np.diag(noisy.covariance), noisy.variance, rtol=1e-12)
    assert noisy.covariance[0, 1] == pytest.approx(1 / precision, rel=1e-8)


def test_an_outside_model_is_saved_scored_compared_and_told(fit, tmp_path):
    mrgp.save(fit, tmp_path / "fit")
    again = mrgp.load(tmp_path / "fit", types=[ConstantRecipe, ConstantField])
    first, second = (mrgp.predict(f, mrgp.points(X)) for f in (fit, again))
    np.testing.assert_array_equal(first.mean, second.mean)
    assert "one level, known to" in again.summary()
    scores = mrgp.evaluate(mrgp.predict(fit, mrgp.points(X), source="sites", noise=True), Y)
    assert scores["rmse"] == pytest.approx(np.std(Y), rel=0.1)
    table = mrgp.compare({"constant": ConstantRecipe()}, DATA, number=3)
    assert "constant" in str(table)


def test_an_outside_model_has_a_report(fit, tmp_path):
    from mrgp.report import write_report

    write_report(fit, tmp_path / "page.html", data=DATA)
    assert "ConstantRecipe" in (tmp_path / "page.html").read_text()


def test_an_outside_model_takes_other_data(fit):
    higher = mrgp.Dataset(
        [mrgp.Observations(mrgp.points(X[:4]), Y[:4] + 5.0, name="sites", units="ppb"), TOTALS]
    )
    other = fit.condition(higher)
    np.testing.assert_array_equal(other.parameters()["level"], fit.parameters()["level"])
    assert mrgp.predict(other, mrgp.points(X)).mean[0] > mrgp.predict(fit, mrgp.points(X)).mean[0]


def test_what_an_outside_model_cannot_do_is_said(fit):
    with pytest.raises(ValueError, match="counts every value alike"):
        mrgp.fit(ConstantRecipe(), DATA, weights={"sites": 0.5})
    with pytest.raises(ValueError, match="leave_one_out needs an exact fit"):
        fit.leave_one_out()
    with pytest.raises(ValueError, match="ConstantRecipe learns no maps"):
        fit.bias_map("sites")
    with pytest.raises(ValueError, match="cannot take its sources one by one"):
        mrgp.dependence(ConstantRecipe(), DATA)
    with pytest.raises(TypeError, match="samples models of one latent field"):
        mrgp.sample_posterior(ConstantRecipe(), DATA)


def test_every_parameter_of_an_outside_model_is_trained():
    trained, _ = partition(ConstantRecipe().build(DATA))
    assert len([leaf for leaf in (trained.prior_mean, trained.noise_variance) if leaf]) == 2
