"""Choose a model by what the data show: tasks, sources, overlap, roughness, bias, shared errors."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from mrgp._cluster import Team, team
from mrgp._types import float64
from mrgp.checks import dependence
from mrgp.data import Dataset, Observations, excerpt, require_in_memory
from mrgp.inference import LBFGS, Evidence, FitError, greatest_evidence
from mrgp.inference.progress import Within, as_progress
from mrgp.kernels import Kernel
from mrgp.models import MRDGP, MRGP, MRGPRN, repeats
from mrgp.selection.candidates import FEWEST, MARGIN, families, kernels_of
from mrgp.selection.comparing import FAILURES, scores_of, split, target_of
from mrgp.selection.counting import chosen_for_likelihoods, may_be_counts
from mrgp.selection.overlap import meets
from mrgp.selection.trials import CLOSE, Held, Trial
from mrgp.weighting import fit_weighted

SAMPLE = 300
MOST = 900
CLEAR = 3.0
LARGEST = 1500
WHOLE = 2500
PLACES = 100
NOISE_FREE = 1e-3
MEANING = {"affine": "a scale and an offset", "field": "a field of its own"}
BIASES = "none", *MEANING
BRIEF = LBFGS(max_steps=60, starts=1, candidates=0, tolerance=1e-6)
TWICE = LBFGS(max_steps=60, starts=2, candidates=0, tolerance=1e-6)
SEARCH = LBFGS(max_steps=100, tolerance=1e-6)


@dataclasses.dataclass(frozen=True)
class Choice:
    """A recipe chosen for data, composite weights to fit it with, and the reasons, in sentences.

    It unpacks as `recipe, reasons`.

    >>> import mrgp
    >>> print(Choice(mrgp.MRGP(), ("There is one source.",)))
    MRGP:
    - There is one source.
    """

    recipe: Any
    reasons: tuple[str, ...]
    weights: str | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.recipe, self.reasons))

    def __str__(self) -> str:
        return "\n".join([f"{type(self.recipe).__name__}:", *(f"- {r}" for r in self.reasons)])


@float64
def choose(
    data: Any,
    target: Any = None,
    *,
    key: int = 0,
    progress: Any = None,
    workers: int | None = None,
    scheduler: Any = None,
) -> Choice:
    """Choose a model for data, and say why.

    `target` is the source, or pair (source, task), that is to be predicted; by default the one of
    the finest support of the first task. Kernels are compared by the evidence of brief fits to a
    sample of all sources; places that repeat in time make a network; sources of one task are tried
    for a bias and for errors they share. Where a bias is more than a line, maps are tried on values
    of the target that are held out. At the end the model and simple rules predict places that are
    held out; where a rule is better, the first reason says so. Candidates are fitted one after
    another, or at once by `workers` or a `scheduler` as of `compare`, with the same result.

    >>> import numpy as np, mrgp
    >>> x = np.linspace(0.0, 6.0, 24)[:, None]
    >>> seen = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]), name="sensors")
    >>> recipe, reasons = mrgp.choose(mrgp.Dataset([seen]))
    >>> type(recipe).__name__, reasons[0]
    ('MRGP', 'There is one source, sensors, and one task, value.')
    """
    if not isinstance(data, Dataset):
        raise TypeError(f"choose takes a Dataset; got {type(data).__name__}.")
    require_in_memory(data)
    known = chosen_for_likelihoods(data)
    if known is not None:
        return Choice(*known)
    shown = as_progress(progress)
    shown.start("choose", 0)
    with team(scheduler, workers, "choose: ") as everyone:
        look = _Look(data, target, key, shown, everyone)
        recipe, weights = look.several_tasks() if len(data.tasks) > 1 else look.one_task()
    shown.finish(type(recipe).__name__)
    return Choice(recipe, (*look.reasons, *may_be_counts(data)), weights)


class _Look:
    """What has been seen of the data so far, and what was made of it."""

    def __init__(self, data: Dataset, target: Any, key: int, progress: Any, everyone: Team):
        self.data, self.key, self.progress, self.everyone = data, key, progress, everyone
        self.process = target_of(data, target)
        self.network = len(data.tasks) == 1 and repeats(data)
        self.reasons: list[str] = []
        self.kernels: dict[tuple[str, str], tuple[str, Kernel]] = {}
        self.biases: dict[str, MRGP] = {}

    def say(self, reason: str) -> None:
        self.reasons.append(reason)
        self.progress.update(len(self.reasons), reason)

    def trying(self, what: str) -> Within:
        """Return the progress of something that is tried."""
        return Within(self.progress, what, at=len(self.reasons))

    def one_task(self) -> tuple[Any, str | None]:
        """Choose among models of one field, and the tree that learns maps between sources."""
        recipe, weights = self.one_field()
        better = self.beside_rules(recipe)
        return (recipe, weights) if better is None else (better, None)

    def one_field(self) -> tuple[Any, str | None]:
        """Choose by tasks, sources, places, kernels, bias and shared errors."""
        source, task = self.process
        if len(self.data) == 1:
            self.say(f"There is one source, {source}, and one task, {task}.")
            return MRGP(kernel=self.family(self.data)), None
        self.say(f"There are {len(self.data)} sources of one task, {task}; the target is {source}.")
        kernel = self.family(self.data)
        plain = MRGP(kernel=kernel, target=source)
        met = self.overlap(self.data)
        if met == 0:
            self.say("Neither a bias nor shared errors can be told where sources never meet.")
            return plain, None
        self.biases = {bias: dataclasses.replace(plain, bias=bias) for bias in BIASES}
        biased = self.bias(kernel, self.data)
        if biased == "none":
            return (plain, None) if self.network else self.shared(plain)
        few = met < FEWEST and not self.network
        if few:
            self.say(f"That is too few for a map: {MEANING[biased]} for each source.")
        if few or self.network or biased == "affine":
            return self.biases[biased], None
        tree = self.tree()
        drifting = dataclasses.replace(tree, deep_inputs=self.data.inputs)
        tried = {meaning: self.biases[bias] for bias, meaning in MEANING.items()}
        maps = {"a map of each source": tree, "a map that changes over the inputs": drifting}
        return self.foretold(tried | maps), None

    def family(self, data: Dataset) -> Kernel | None:
        """Return the kernel of greatest evidence on all sources together; None is the default."""
        if self.network:
            self.say(
                "Places repeat in time: a network, with what is common to all, smooth in space, and"
                " local to each place, for a short time and for long."
            )
            return None
        observed = data.dropna()
        tried = families(observed)
        whole = MRGP(target=self.process[0], bias="affine" if len(data) > 1 else "none")
        models = {n: dataclasses.replace(whole, kernel=k) for n, (k, _) in tried.items()}
        weighed = self.evidences("kernel", models, *observed)
        found = {name: evidence.with_prior for name, evidence in weighed.items()}
        usual = next(iter(found))
        ahead = {name: found[name] - found[usual] - margin for name, (_, margin) in tried.items()}
        best = max(ahead, key=lambda name: ahead[name])
        best = best if ahead[best] > 0 else usual
        several = f", log evidence with log prior {_listed(found)} on a sample of all sources"
        self.say(f"Kernel: {best}{several if len(found) > 1 else ''}.")
        return tried[best][0]

    def beside_rules(self, recipe: Any) -> Any:
        """Say how the model and simple rules predict places that are held out of a sample.

        Where a rule is better and another bias of the sources predicts these places better, the
        model with that one is returned, otherwise None.
        """
        held = Held.of(self.sample(*self.data.dropna(), most=WHOLE), self.process, self.key)
        if held is None:
            return None
        try:
            trial = held.trial(recipe, self.progress)
        except FAILURES as error:
            self.say(f"The model could not be tried beside simple rules: {error}")
            return None
        better = None
        if trial.behind:
            trial, better = self.another_bias(held, recipe, trial)
        if trial.behind:
            self.reasons.insert(0, trial.verdict)
            self.progress.update(len(self.reasons), trial.verdict)
        else:
            self.say(trial.verdict)
        return better

    def another_bias(self, held: Held, recipe: Any, trial: Trial) -> tuple[Trial, Any]:
        """Return the trial of the freer bias that predicts places held out best, and its model.

        Sources that share an error may agree better with one another than with the target; the
        evidence then takes what the target says for noise. What it says against a line stands:
        places held out are among the target's own, and tell nothing of a bias elsewhere.
        """
        better, tried = None, list(self.biases)
        known = [bias for bias, other in self.biases.items() if other == recipe]
        for bias in tried[tried.index(known[0]) + 1 :] if known else ():
            other = self.biases[bias]
            try:
                found = held.trial(other, self.progress, f", bias {bias}")
            except FAILURES:
                continue
            if found.model["crps"] * CLOSE < trial.model["crps"]:
                trial, better = found, other
        if better is not None:
            self.say(
                f"Places that are held out are predicted best with bias {better.bias!r}, whatever"
                " the evidence: it is taken."
            )
        return trial, better

    def several_tasks(self) -> tuple[Any, str | None]:
        """Choose among models of several tasks."""
        _, task = self.process
        others = [name for name in self.data.tasks if name != task]
        self.say(f"There are several tasks: {task}, to be predicted, and {', '.join(others)}.")
        kernel = self.kernel(self.process)
        mine = self.data.select(task=task)
        if len(mine) > 1:
            met = self.overlap(mine)
            if met and self.bias(kernel, mine) != "none":
                if met >= FEWEST:
                    self.say("The map of each source to the target is learned, and mixed in.")
                    return self.tree(), None
                self.say("That is too few for a map: the bias is taken for noise.")
        self.say(
            f"Tasks are mixtures of {len(self.data.tasks)} latent functions in proportions that do"
            " not change: the posterior has a closed form. Shared errors were not looked for."
        )
        return MRGPRN(latents=len(self.data.tasks), kernel_f=kernel, kernel_w="constant"), None

    def foretold(self, models: dict[str, Any]) -> Any:
        """Return the model that best predicts the middle third of the target's sample."""
        sample = self.sample(*self.data.dropna())
        target = sample[self.process]
        clock = target.support.clock or 0
        order = np.argsort(np.asarray(target.support.bounds[0])[:, clock], kind="stable")
        held = np.zeros(len(order), bool)
        held[order[len(order) // 3 : 2 * len(order) // 3]] = True
        train, test = split(sample, self.process, held)
        found = self.each("map", _foretell, (train, test, self.key), models)
        best = min(found, key=lambda name: np.nan_to_num(found[name], nan=np.inf))
        self.say(
            f"Where the middle third of a sample of {target.name} is held out, {best} predicts it"
            f" best: crps {_listed(found, '.3g')}."
        )
        return models[best]

    def tree(self) -> MRDGP:
        """Return the tree that learns a map of each source, the same everywhere."""
        single = len(self.data.tasks) == 1
        bases: Any = {p[0] if single else p: self.kernel(p) for p in self.data.processes}
        return MRDGP(target=self.process[0] if single else self.process, kernel_base=bases)

    def kernel(self, process: tuple[str, str]) -> Kernel:
        """Return the kernel of greatest evidence on a sample of a source."""
        if process in self.kernels:
            return self.kernels[process][1]
        observed = self.data[process].dropna()
        tried = kernels_of(observed)
        models = {name: MRGP(kernel=k) for name, k in tried.items()}
        weighed = self.evidences(f"{process[0]}, kernel", models, observed)
        found = {name: evidence.with_prior for name, evidence in weighed.items()}
        # Sources of one world are as rough as one another, unless they say otherwise.
        known = next((name for name, _ in self.kernels.values()), "")
        usual = known if known in found else next(iter(found))
        best = max(found, key=lambda name: found[name])
        if found[best] < found[usual] + MARGIN:
            best = usual
        seen = f", log evidence with log prior {_listed(found)} on a sample"
        name = process[0] if len(self.data.tasks) == 1 else ", ".join(process)
        self.say(f"Kernel of {name}: {best}{seen if len(found) > 1 else ''}.")
        self.kernels[process] = best, tried[best]
        return tried[best]

    def sample(self, *observed: Observations, most: int = MOST) -> Dataset:
        """Return some hundred values of each source, the same ones every time.

        Of a network it is a stretch of time at all places, or many, with nothing taken apart.
        """
        if self.network:
            return excerpt(Dataset(observed), PLACES, WHOLE, self.key)
        size = max(min(SAMPLE, most // len(observed)), most // (4 * len(observed)))
        return Dataset(observed).batch(size, self.key)

    def evidences(
        self,
        what: str,
        models: dict[str, Any],
        *observed: Observations,
        optimiser: LBFGS = TWICE,
    ) -> dict[str, Evidence]:
        """Return log evidences of brief exact fits to one sample, and with their log priors."""
        optimiser = BRIEF if self.network else optimiser
        return self.each(what, _weigh, (self.sample(*observed), optimiser, self.key), models)

    def each(self, what: str, work: Any, shared: Any, models: dict[str, Any]) -> dict[str, Any]:
        """Return what comes of some work with each model, by whoever is there."""
        words = [f"{what} {n} of {len(models)} ({name})" for n, name in enumerate(models, 1)]
        # What others do cannot be watched.
        shown = [self.trying(text) if self.everyone.here else None for text in words]
        found = dict(self.everyone.spread(work, shared, zip(models.values(), shown, strict=True)))
        return {name: found[number] for number, name in enumerate(models)}

    def bias(self, kernel: Kernel | None, data: Dataset) -> str:
        """Return the bias that other sources have, by the evidence: "none", "affine" or "field".

        A field of its own has to be ahead without the priors of its parameters, which the others
        do not have.
        """
        plain = MRGP(kernel=kernel, target=self.process[0])
        models = {bias: dataclasses.replace(plain, bias=bias) for bias in BIASES}
        weighed = self.evidences("bias, fit", models, *data.dropna(), optimiser=SEARCH)
        none, affine, field = weighed.values()
        others = len(data) - 1
        gain = affine.with_prior - none.with_prior
        clear = gain > CLEAR * 2 * others
        self.say(
            f"A scale and an offset of the other sources {'raise' if gain > 0 else 'do not raise'}"
            f" the log evidence{f' by {gain:.1f}' if gain > 0 else ''}:"
            f" {'they are biased' if clear else 'no sign of a bias'}."
        )
        more = field.alone - (affine if clear else none).alone
        beyond = more > CLEAR * (1 if clear else 2) * others
        known = "more than a scale and an offset" if beyond else "no sign of more"
        self.say(
            f"Fields of their own, by which they are off from place to place,"
            f" {f'raise it by {more:.1f}' if more > 0 else 'do not'}{' more' * clear}: {known}."
        )
        return "field" if beyond else "affine" if clear else "none"

    def overlap(self, data: Dataset) -> int:
        """Return how many of the target's values lie where another source sees."""
        data = data.dropna()
        target = data[self.process]
        chosen = np.linspace(0, len(target) - 1, min(len(target), SAMPLE)).astype(int)
        sample = target.support[np.unique(chosen)]
        seen = np.any([meets(sample, o.support) for o in data if o.process != self.process], 0)
        count = round(float(np.mean(seen)) * len(target))
        self.say(f"{count} of the target's {len(target)} values lie where another source sees.")
        return count

    def shared(self, plain: MRGP) -> tuple[MRGP, str | None]:
        """Return a model with composite weights where sources share errors, or the plain one.

        To all sources together, errors that they share look like a rough field: where there are
        any, the kernel is that of the target alone.
        """
        kernel = self.kernel(self.process)
        if self.weights(kernel) is None:
            return plain, None
        return dataclasses.replace(plain, kernel=kernel), "auto"

    def weights(self, kernel: Kernel | None) -> str | None:
        """Look for errors that sources share, where the data are not too many."""
        count = sum(len(o) for o in self.data.dropna())
        if count > LARGEST:
            self.say(f"Shared errors were not looked for: there are {count} values.")
            return None
        try:
            shown = self.trying("shared errors")
            found = dependence(MRGP(kernel=kernel), self.data, key=self.key, progress=shown)
        except FitError as error:
            self.say(f"Shared errors could not be looked for: {error}")
            return None
        shared = [pair for pair in found.pairs if pair.verdict.startswith("they share errors")]
        for pair in found.pairs:
            words = f" (correlation {pair.correlation:.2f})" if pair in shared else ""
            verdict = "they share errors" if pair in shared else pair.verdict
            self.say(f"{pair.first} and {pair.second}: {verdict}{words}.")
        if not shared:
            return None
        if self.noise_share(kernel) < NOISE_FREE:
            self.say("They are nearly free of noise, which weights would only add: none are taken.")
            return None
        self.say("Composite weights keep sources from counting the same errors twice.")
        return "auto"

    def noise_share(self, kernel: Kernel | None) -> float:
        """Return the noise variance of the target alone, as a share of its values' variance.

        Sources that share errors agree too well: together they seem to have no noise.
        """
        alone = self.sample(self.data[self.process].dropna())
        shown = self.trying("noise of the target")
        found = fit_weighted(MRGP(kernel=kernel), alone, self.key, optimiser=BRIEF, progress=shown)
        noise = found.model.observation_noise(self.process)
        return noise / float(found.scaling.scale[0]) ** 2


def _weigh(shared: tuple[Dataset, LBFGS, int], task: tuple[Any, Within | None]) -> Evidence:
    (sample, optimiser, key), (model, shown) = shared, task
    return greatest_evidence(model, sample, optimiser, key, shown)


def _foretell(shared: tuple[Dataset, Any, int], task: tuple[Any, Within | None]) -> float:
    (train, test, key), (model, shown) = shared, task
    try:
        return scores_of(model, train, test, key, None, shown)["crps"]
    except FAILURES:
        return np.inf


def _listed(found: dict[str, float], form: str = ".1f") -> str:
    return ", ".join(f"{value:{form}} ({name})" for name, value in found.items())
