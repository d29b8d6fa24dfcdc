"""The design of an experiment: its cells, one model on one seed, fold or site of a variant each."""

import dataclasses
import functools
import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mrgp
from mrgp.datasets import Case
from mrgp.experiments.rivals import ModelSpec
from mrgp.experiments.scoring import Scored, sample, score
from mrgp.experiments.spec import DATA, Experiment
from mrgp.experiments.yardstick import score_failure, score_risk, score_rule
from mrgp.inference import Fit
from mrgp.inference.tallies import checksum_of
from mrgp.selection.comparing import FAILURES

BESIDE = {"cli", "plotting", "report", "sklearn.py"}
BESIDE |= {
    f"experiments/{name}.py"
    for name in ("figures", "parallel", "results", "runs", "store", "margins")
}
"""Code that does not change a result."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One model on one seed, fold or site of one variant.

    >>> from mrgp import experiments
    >>> cell = experiments.plan(experiments.find("dependent"), quick=True)[0][0]
    >>> cell.labels == {"variant": cell.variant, "model": cell.model, "seed": 0}
    True
    """

    variant: str
    model: str
    spec: ModelSpec
    noun: str
    number: int
    label: Any
    data: str
    settings: Mapping[str, Any]
    sampler: Mapping[str, Any] | None
    timed: bool
    drawn: bool = False
    tolerant: bool = False

    def __str__(self) -> str:
        return f"{self.replicate}, {self.model}"

    @property
    def replicate(self) -> str:
        """The variant, and the seed, fold or site, in words."""
        return f"{self.variant}, {self.noun} {self.label}"

    @property
    def slug(self) -> str:
        """A name for files, of its own for other settings."""
        return slug(self.variant, self.noun, self.label, self.model, _digest(self._settings)[:8])

    @property
    def labels(self) -> dict[str, Any]:
        """The columns that name the cell in a table."""
        return {"variant": self.variant, "model": self.model, self.noun: self.label}

    def load(self) -> Case:
        """Simulate or read the data; maps are for the replicate that is drawn."""
        case = DATA[self.data].load(self.label, **self.settings)
        return dataclasses.replace(case, maps={}) if case.maps and not self.drawn else case

    def fingerprint(self, case: Case) -> str:
        """Return what tells whether a result is of this model, these data and this code."""
        values = [checksum_of(case.data), zlib.crc32(case.y.tobytes()), list(case.maps)]
        return _digest([_code(), *self._settings, *values])

    @property
    def _settings(self) -> list[Any]:
        spec = self.spec.model_dump(mode="json", exclude_defaults=True)
        return [self.labels, dict(self.settings), spec, self.sampler and dict(self.sampler)]

    def work(self, case: Case, earlier: Fit | None) -> Scored:
        """Fit, or sample, the model and score it.

        Folds of recorded data share what depends on none of the values held out: parts of an
        earlier fit are taken over. Simulations share nothing.
        """
        if self.sampler is not None:
            return sample(self.spec, case, self.number, dict(self.sampler))
        if self.spec.rule is not None:
            return score_rule(self.spec.rule, case)
        if self.spec.says_risk:
            return score_risk(self.spec, case, self.number)
        if not self.tolerant:
            return self._scored(case, earlier)
        try:
            return self._scored(case, earlier)
        except FAILURES as error:
            return score_failure(case, error)

    def _scored(self, case: Case, earlier: Fit | None) -> Scored:
        if case.truth is not None:
            return score(self.spec, case, self.number, timed=self.timed)
        # One key for all folds: what they share does not depend on which came first.
        return score(self.spec, case, 0, timed=self.timed, earlier=earlier)


Plan = Sequence[Sequence[Cell]]
"""Cells, replicate by replicate."""


def _digest(what: Any) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


@functools.cache
def _code() -> str:
    """Return a digest of the code that makes data, fits, predicts and scores."""
    root, digest = Path(mrgp.__file__).parent, hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        path = file.relative_to(root)
        if not {path.parts[0], path.as_posix()} & BESIDE:
            digest.update(file.read_bytes())
    return digest.hexdigest()


def slug(*names: Any) -> str:
    """Return a name for a file, of letters, digits and dashes.

    >>> slug("24h", "fold", "20-21 June", "mr-gp:ratio")
    '24h-fold-20-21-June-mr-gp-ratio'
    """
    return re.sub(r"[^0-9A-Za-z.]+", "-", "-".join(map(str, names)))


def plan(
    experiment: Experiment,
    *,
    variants: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    models: Sequence[str] | None = None,
    preset: str | None = None,
    quick: bool = False,
) -> Plan:
    """Return what is to be run, replicate by replicate: those asked for, or all.

    >>> from mrgp import experiments
    >>> chosen = experiments.find("dependent")
    >>> replicates = experiments.plan(chosen, seeds=[3, 5], variants=list(chosen.variants)[:1])
    >>> [replicate[0].label for replicate in replicates]
    [3, 5]
    """
    small = experiment.quick if quick else None
    asked = experiment.choose_models(models, preset, quick)
    replicates, found = experiment.replicates, []
    for variant in experiment.choose("variants", variants or (small and small.variants)):
        settings = dict(experiment.variants[variant])
        sampler, _ = settings.pop("sampler", None), settings.pop("models", None)
        own = settings.pop("seeds", experiment.seeds)
        count = small.seeds if small else own
        numbers = range(count) if seeds is None and count is not None else seeds
        if sampler is not None and small is not None:
            sampler = sampler | (small.sampler or {})
        for place, (number, label) in enumerate(replicates.choose(numbers, settings).items()):
            timed = experiment.timed is None or place < experiment.timed
            case = (replicates.noun, number, label, experiment.cases, settings, sampler)
            specs = {model: experiment.model(model, variant) for model in asked}
            found.append(
                [
                    Cell(variant, *m, *case, timed, place == 0, experiment.tolerant)
                    for m in specs.items()
                ]
            )
    return found
