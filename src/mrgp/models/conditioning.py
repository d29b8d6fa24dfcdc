"""Conditioning a model on records, of any size for which there is a program."""

from typing import Any

from mrgp._compiled import Compiled
from mrgp._types import to_numpy
from mrgp.data import Records
from mrgp.models.answers import as_arrays
from mrgp.models.contract import Model, State


def conditioned(model: Model, records: Records) -> State:
    """Return the posterior state of a model given records.

    >>> import mrgp
    >>> from mrgp.data import Dataset, Scaling
    >>> seen = mrgp.Observations(mrgp.points([[0.0]]), [2.0], noise_variance=1.0)
    >>> model = mrgp.MRGP(mrgp.Constant(1.0), mean="zero").build(Dataset([seen]))
    >>> state = conditioned(model, Scaling.of(Dataset([seen])).records(Dataset([seen])))
    >>> state.alpha.round(3).tolist()  # 2 / (1 + 1)
    [1.0]
    """
    if model.linear is not None:
        return model.linear.solved(records)
    return to_numpy(_conditioned(*as_arrays((model, filled(model, records))), effort="least"))


@Compiled
def _conditioned(model: Model, records: Records) -> State:
    return model.condition(records)


def filled(model: Any, records: Records) -> Records:
    """Return records filled up to sizes for which code is compiled, where the model allows it.

    >>> import mrgp
    >>> from mrgp.data import Dataset, Scaling
    >>> data = Dataset([mrgp.Observations(mrgp.points([[0.0], [1.0]]), [0.0, 2.0])])
    >>> [len(r) for r in filled(mrgp.MRGP().build(data), Scaling.of(data).records(data))]
    [16]
    """
    if model.composite is None or not model.composite.masks:
        return records
    return tuple(record.filled() for record in records)
