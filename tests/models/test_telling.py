"""What a recipe says of itself."""

import numpy as np
import pytest

import mrgp

MANY = np.zeros((200, 2))


@pytest.mark.parametrize(
    ("recipe", "told"),
    [
        (mrgp.MRGP(), "MRGP()"),
        (mrgp.MRGP(inducing=MANY), "MRGP(inducing=array of shape (200, 2))"),
        (mrgp.MRGP(bias="offset", priors=False), "MRGP(bias='offset', priors=False)"),
        (mrgp.VBAgg(inducing=MANY), "VBAgg(inducing=array of shape (200, 2))"),
        (
            mrgp.CenterPoint(mrgp.MRGP(inducing=MANY)),
            "CenterPoint(model=MRGP(inducing=array of shape (200, 2)))",
        ),
        (mrgp.MRGPRN(latents=2, positive=True), "MRGPRN(latents=2, positive=True)"),
        (mrgp.MRDGP(target="sensors"), "MRDGP(target='sensors')"),
    ],
)
def test_a_recipe_tells_what_is_set_and_no_arrays(recipe, told):
    assert repr(recipe) == told
