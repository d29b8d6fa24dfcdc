"""Parameters from a sample of the data, and the posterior from all of them."""

import dataclasses

from mrgp._types import float64, to_numpy
from mrgp.data import Dataset
from mrgp.inference import Fit
from mrgp.inference.fits import checksum_of, counts_of
from mrgp.inference.objectives import build_objective
from mrgp.models import conditioned


@float64
def condition_on(fitted: Fit, data: Dataset) -> Fit:
    """Return a sparse fit with the same parameters and the posterior of other data.

    The data have the processes of those fitted; where these are a sample of them, the parameters
    cost what the sample costs, and all data are gone through once.

    >>> import numpy as np, mrgp
    >>> x = np.linspace(0.0, 9.0, 40)[:, None]
    >>> data = mrgp.Dataset([mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]))])
    >>> fitted = mrgp.fit(mrgp.MRGP(inducing=10), data.batch(20))
    >>> condition_on(fitted, data).counts
    {('source', 'value'): (40, 0)}
    """
    seen = fitted.recipe.view(data)
    target = build_objective(fitted.model, seen, fitted.scaling, fitted.weights)
    state = to_numpy(conditioned(target.model(target.start), target.records))
    return dataclasses.replace(
        fitted, state=state, counts=counts_of(data), checksum=checksum_of(data)
    )
