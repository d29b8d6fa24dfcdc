"""The public API as a machine of states: whatever is called in whatever order, its laws hold."""

import sys
import tempfile
import time
import warnings
from pathlib import Path

import jax
import numpy as np
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from outcomes import Tried

import mrgp

FEW = mrgp.LBFGS(max_steps=4, starts=1, candidates=0)
KERNELS = {"rbf": mrgp.RBF(), "matern": mrgp.Matern32()}
MODELS = {
    "exact": lambda kernel: mrgp.MRGP(kernel, method="exact"),
    "collapsed": lambda kernel: mrgp.MRGP(kernel, method="collapsed", inducing=5),
    "markov": lambda _: mrgp.MRGP(mrgp.Matern32(), method="markov"),
    "network": lambda kernel: mrgp.MRGPRN(latents=1, kernel_f=kernel, kernel_w="constant"),
}
steps = {"examples": 0, "tried": None}
CLEAR_EVERY = 40
LONGEST = 300.0
"""Seconds for a sequence: its fits are compiled first."""


class Session(RuleBasedStateMachine):
    """What a person may do with data, a fit and its predictions."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.fit = None
        self.began = time.perf_counter()
        steps["examples"] += 1

    @initialize(seed=st.integers(0, 5), wide=st.booleans(), gap=st.booleans())
    def see(self, seed, wide, gap):
        """Begin with one or two sources of one field."""
        rng = np.random.default_rng(seed)
        x = np.sort(rng.uniform(0, 5, (14, 1)), 0)
        y = np.sin(x[:, 0]) + 0.1 * rng.standard_normal(14)
        if gap:
            y[3] = np.nan
        sources = [mrgp.Observations(mrgp.points(x, inputs="time"), y, name="a")]
        if wide:
            lower = np.arange(6.0)[:, None]
            cells = mrgp.boxes(lower, lower + 1, inputs="time")
            sources.append(mrgp.Observations(cells, np.cos(lower[:, 0]), name="b"))
        self.data = mrgp.Dataset(sources)

    @rule(kernel=st.sampled_from(sorted(KERNELS)), model=st.sampled_from(sorted(MODELS)))
    def make(self, kernel, model):
        recipe = MODELS[model](KERNELS[kernel])
        self.fit = mrgp.fit(recipe, self.data, optimiser=FEW, progress=None)

    @precondition(lambda self: self.fit is not None)
    @rule()
    def save_and_load(self):
        path = Path(self.folder.name) / "fit"
        mrgp.save(self.fit, path)
        again = mrgp.load(path)
        assert again.summary() == self.fit.summary()
        self.fit = again

    @precondition(lambda self: self.fit is not None)
    @rule()
    def go_on(self):
        before = self.fit.history[-1]
        self.fit = self.fit.resume(self.data, optimiser=FEW, progress=None)
        assert self.fit.history[-1] >= before - 1e-6 * abs(before)

    @precondition(lambda self: self.fit is not None)
    @rule(shift=st.floats(-2, 2))
    def condition(self, shift):
        moved = mrgp.Dataset([o.replace(y=o.y + shift) for o in self.data])
        other = self.fit.condition(moved)
        assert other.parameters().keys() == self.fit.parameters().keys()
        back = other.condition(self.data)
        at = mrgp.points([[1.0], [4.0]], inputs="time")
        np.testing.assert_allclose(
            mrgp.predict(back, at).mean, mrgp.predict(self.fit, at).mean, atol=1e-6
        )

    @precondition(lambda self: self.fit is not None)
    @rule(order=st.permutations(range(6)), width=st.floats(0, 2), seed=st.integers(0, 9))
    def predict(self, order, width, seed):
        lower = np.random.default_rng(seed).uniform(-1, 6, (6, 1))
        found = mrgp.predict(self.fit, mrgp.boxes(lower, lower + width))
        assert np.isfinite(found.mean).all()
        assert (found.variance >= 0).all()
        rows = list(order)
        moved = mrgp.predict(self.fit, mrgp.boxes(lower[rows], lower[rows] + width))
        np.testing.assert_allclose(moved.mean, found.mean[rows], rtol=1e-8, atol=1e-8)
        alone = mrgp.predict(self.fit, mrgp.boxes(lower[:1], lower[:1] + width))
        np.testing.assert_allclose(alone.mean, found.mean[:1], rtol=1e-8, atol=1e-8)
        low, high = found.interval(0.8)
        assert (low <= found.mean).all()
        assert (found.mean <= high).all()

    @precondition(lambda self: self.fit is not None)
    @rule(level=st.floats(-3, 3))
    def noise_and_exceedance(self, level):
        at = mrgp.points([[0.5], [2.5]], inputs="time")
        plain = mrgp.predict(self.fit, at)
        noisy = mrgp.predict(self.fit, at, source="a", noise=True)
        assert (noisy.variance >= plain.variance).all()
        chance = plain.exceedance(level)
        assert ((chance >= 0) & (chance <= 1)).all()
        scores = mrgp.evaluate(plain, np.array([0.0, np.nan]))
        assert scores["n"] == 1

    @invariant()
    def the_data_are_as_they_were(self):
        if hasattr(self, "data") and self.fit is not None:
            assert self.fit.has_data(self.data)

    def teardown(self):
        self.folder.cleanup()
        clear_now_and_then()
        if steps["tried"] is not None:
            steps["tried"].answer()
            steps["tried"].timed(self.began, LONGEST)


def clear_now_and_then():
    """Give compiled programs back: every new shape adds some, and none is ever dropped."""
    if steps["examples"] % CLEAR_EVERY == 0:
        jax.clear_caches()


def try_sequences(count, first):
    """Call the API in so many sequences, from a seed."""
    tried = steps["tried"] = Tried("api", "sequences of calls of the public API")
    chosen = settings(
        max_examples=count,
        stateful_step_count=8,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    try:
        run_state_machine_as_test(seed(first)(Session), settings=chosen)
    except Exception as error:
        tried.fail(f"{type(error).__name__} with seed {first}: {error}")
        tried.answered -= 1
    return tried


def main():
    warnings.simplefilter("ignore")
    mrgp.compilation_cache()
    try_sequences(int(sys.argv[1]), int(sys.argv[2])).say()


if __name__ == "__main__":
    main()
