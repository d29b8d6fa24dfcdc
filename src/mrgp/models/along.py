"""When a linear model is solved along time: by its kernels, its supports, and the cost."""

from collections.abc import Sequence

from mrgp.data import Dataset
from mrgp.gp import Markov, refusal, states_of
from mrgp.kernels import Kernel
from mrgp.parameters import unwrap
from mrgp.supports import Rule

FEWEST = 400
MOVE = 40
MOST_STATES = 1500


def along_time(kernels: Sequence[Kernel], data: Dataset, rule: Rule, wanted: bool) -> Markov | None:
    """Return the solver along time, or None where it does not apply or costs more than a dense one.

    Where it is `wanted`, it is returned whatever it costs, or an error says why it does not apply.
    """
    time = data.clock
    if time is None:
        if not wanted:
            return None
        raise ValueError(
            f'method="markov" runs along time, and none of the inputs {data.inputs} is named so;'
            ' name it by inputs=, as inputs=("lon", "lat", "time").'
        )
    seen = data.dropna()
    count = sum(map(len, seen))
    if count < FEWEST and not wanted:
        return None
    bare = tuple(map(unwrap, kernels))
    reason = refusal(bare, time, [o.support for o in seen], data.inputs)
    if reason is not None:
        if not wanted:
            return None
        raise ValueError(
            f'method="markov": {reason}. Other methods take any kernel and support: "exact" for'
            ' few values, "collapsed" for more.'
        )
    solver = Markov(tuple(kernels), time=time, rule=rule)
    if wanted:
        return solver
    steps, states, block = states_of(bare, time, [o.support for o in seen])
    cheaper = steps * float(states) ** 2 * (MOVE + 2 * block) < float(count) ** 3
    return solver if cheaper and states <= MOST_STATES else None
