"""What experiments are repeated over: seeds, folds, sites."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mrgp import datasets
from mrgp.datasets import Recording, Simulation


class ExperimentError(ValueError):
    """An experiment that cannot be found, read or run as asked.

    >>> DATA["inter_task"].choose([9])
    Traceback (most recent call last):
    mrgp.experiments.replicates.ExperimentError: There are 5 folds, 0 to 4; fold 9 was asked for...
    """


class Replicates(NamedTuple):
    """What an experiment is repeated over: any seeds, or the folds or sites that there are.

    `load` takes a seed, or one of `names()`, and the settings of a variant. `names` takes those
    settings that `varies` lists. `scored` is what scores are of, where not of the replicate.

    >>> DATA["inter_task"].choose([1])
    {1: '20-21 June'}
    """

    noun: str
    load: Callable[..., Simulation | Recording]
    names: Callable[..., Sequence[str]] | None = None
    scored: str | None = None
    varies: tuple[str, ...] = ()

    def choose(
        self, numbers: Sequence[int] | None, settings: Mapping[str, Any] | None = None
    ) -> dict[int, Any]:
        """Return the replicates of some numbers, or all that there are, by number."""
        if self.names is None:
            return {number: number for number in numbers or ()}
        chosen_by = {k: v for k, v in (settings or {}).items() if k in self.varies}
        there = dict(enumerate(self.names(**chosen_by)))
        chosen = list(there) if numbers is None else list(numbers)
        wrong = [number for number in chosen if number not in there]
        if wrong:
            count = f"are {len(there)} {self.noun}s, 0 to {len(there) - 1}"
            raise ExperimentError(
                f"There {count if len(there) > 1 else f'is one {self.noun}, 0'}; {self.noun}"
                f" {wrong[0]} was asked for. Ask for --seeds {len(there)} or fewer."
            )
        return {number: there[number] for number in chosen}


DATA = {
    "dependent": Replicates("seed", datasets.dependent),
    "dependent_map": Replicates("seed", datasets.dependent_map),
    "mcmc_dependent": Replicates("seed", datasets.mcmc_dependent),
    "biased": Replicates("seed", datasets.biased),
    "biases": Replicates("seed", datasets.biases),
    "mixing": Replicates("seed", datasets.mixing),
    "scaling": Replicates("seed", datasets.scaling),
    "inter_task": Replicates("fold", datasets.inter_task, datasets.folds),
    "inter_task_laqn": Replicates("site", datasets.inter_task_laqn, datasets.laqn_sites),
    "fusion": Replicates("fold", datasets.fusion, datasets.fusion_folds),
    "london_no2": Replicates(
        "fold", datasets.london_no2, datasets.london_folds, scored="site", varies=("protocol",)
    ),
}
