"""What is said while a model is chosen."""

import numpy as np
import pytest

import mrgp


class Heard:
    """Keep all that is said."""

    def __init__(self):
        self.texts, self.ends = [], []

    def start(self, title, total):
        pass

    def update(self, step, text):
        self.texts.append(text)

    def finish(self, text):
        self.ends.append(text)


@pytest.mark.thorough
def test_choosing_says_which_kernel_and_which_held_out_fit_it_is_at():
    x = np.linspace(0.0, 6.0, 24)[:, None]
    seen = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]), name="sensors")
    heard = Heard()
    choice = mrgp.choose(mrgp.Dataset([seen]), progress=heard)
    for part in (
        "kernel 1 of 3 (Matern-3/2): compiling, first step",
        "kernel 2 of 3 (RBF): start 1 of 2, step 1 of at most 60, bound ",
        "kernel 3 of 3 (Matern-1/2): looking at what it gives",
        "held out, fit 4 of 4: step 1 of at most 40, bound ",
    ):
        assert any(text.startswith(part) for text in heard.texts), part
    assert not any("converged" in text for text in heard.texts)
    assert heard.ends == [type(choice.recipe).__name__]
