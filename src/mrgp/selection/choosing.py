"""Choose a model by what the data show: tasks, sources, overlap, roughness, bias, shared errors."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from mrgp._types import float64
from mrgp.checks import dependence
from mrgp.data import Dataset, Observations
from mrgp.inference import LBFGS, Evidence, FitError, greatest_evidence
from mrgp.inference.progress import as_progress
from mrgp.kernels import RBF, Kernel, Matern12, Matern32, separable
from mrgp.models import MRDGP, MRGP, MRGPRN, plain_kernel, repeats
from mrgp.selection.comparing import FAILURES, scores_of, split, target_of
from mrgp.selection.counting import chosen_for_likelihoods, may_be_counts
from mrgp.selection.sightings import covariate_names
from mrgp.selection.trials import Trial, stretch
from mrgp.supports import Boxes, Geometry, Polygons, Support
from mrgp.weighting import fit_weighted

SAMPLE = 300
MOST = 900
FEWEST = 10
CLEAR = 3.0
MARGIN = 1.0
LARGEST = 1500
WHOLE = 2500
NOISE_FREE = 1e-3
BRIEF = LBFGS(max_steps=60, starts=1, candidates=0)
SEARCH = LBFGS(max_steps=100)

Corners = Float[np.ndarray, "n d"]


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
def choose(data: Any, target: Any = None, *, key: int = 0, progress: Any = None) -> Choice:
    """Choose a model for data, and say why.

    `target` is the source, or pair (source, task), that is to be predicted; by default the one of
    the finest support of the first task. Kernels are compared by the evidence of brief fits to a
    sample of all sources; places that repeat in time make a network; sources of one task are tried
    for a bias and for errors they share. Where a bias is more than a line, maps are tried on values
    of the target that are held out. At the end the model and simple rules predict places that are
    held out; where a rule is better, the first reason says so.

    >>> import numpy as np, mrgp
    >>> x = np.linspace(0.0, 6.0, 24)[:, None]
    >>> seen = mrgp.Observations(mrgp.points(x), np.sin(x[:, 0]), name="sensors")
    >>> recipe, reasons = mrgp.choose(mrgp.Dataset([seen]))
    >>> type(recipe).__name__, reasons[0]
    ('MRGP', 'There is one source, sensors, and one task, value.')
    """
    if not isinstance(data, Dataset):
        raise TypeError(f"choose takes a Dataset; got {type(data).__name__}.")
    known = chosen_for_likelihoods(data)
    if known is not None:
        return Choice(*known)
    shown = as_progress(progress)
    shown.start("choose", 0)
    look = _Look(data, target, key, shown)
    recipe, weights = look.several_tasks() if len(data.tasks) > 1 else look.one_task()
    shown.finish(type(recipe).__name__)
    return Choice(recipe, (*look.reasons, *may_be_counts(data)), weights)


class _Look:
    """What has been seen of the data so far, and what was made of it."""

    def __init__(self, data: Dataset, target: Any, key: int, progress: Any):
        self.data, self.key, self.progress = data, key, progress
        self.process = target_of(data, target)
        self.network = len(data.tasks) == 1 and repeats(data)
        self.reasons: list[str] = []
        self.kernels: dict[tuple[str, str], tuple[str, Kernel]] = {}
        self.line = -np.inf

    def say(self, reason: str) -> None:
        self.reasons.append(reason)
        self.progress.update(len(self.reasons), reason)

    def one_task(self) -> tuple[Any, str | None]:
        """Choose among models of one field, and the tree that learns maps between sources."""
        recipe, weights = self.one_field()
        self.beside_rules(recipe)
        return recipe, weights

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
        if not self.bias(kernel, self.data):
            return (plain, None) if self.network else self.shared(plain)
        line = dataclasses.replace(plain, bias="affine")
        if self.network:
            return line, None
        if met < FEWEST:
            self.say("That is too few for a map: a scale and an offset for each source.")
        if met >= FEWEST and self.beyond_a_line(kernel):
            tree = self.tree()
            drifting = dataclasses.replace(tree, deep_inputs=self.data.inputs)
            maps = {"a map of each source": tree, "a map that changes over the inputs": drifting}
            return self.foretold({"a scale and an offset": line} | maps), None
        return line, None

    def family(self, data: Dataset) -> Kernel | None:
        """Return the kernel of greatest evidence on all sources together; None is the default."""
        if self.network:
            self.say(
                "Places repeat in time: a network, with what is common to all, smooth in space, and"
                " local to each place, for a short time and for long."
            )
            return None
        observed = data.dropna()
        tried = _families(observed)
        whole = MRGP(target=self.process[0], bias="affine" if len(data) > 1 else "none")
        found = {
            name: self.evidence(dataclasses.replace(whole, kernel=k), *observed).with_prior
            for name, (k, _) in tried.items()
        }
        usual = next(iter(found))
        ahead = {name: found[name] - found[usual] - margin for name, (_, margin) in tried.items()}
        best = max(ahead, key=lambda name: ahead[name])
        best = best if ahead[best] > 0 else usual
        several = f", log evidence with log prior {_listed(found)} on a sample of all sources"
        self.say(f"Kernel: {best}{several if len(found) > 1 else ''}.")
        return tried[best][0]

    def beside_rules(self, recipe: Any) -> None:
        """Say how the model and simple rules predict places that are held out of a sample."""
        sample = self.sample(*self.data.dropna(), most=WHOLE)
        try:
            trial = Trial.of(recipe, sample, self.process, self.key)
        except FAILURES as error:
            self.say(f"The model could not be tried beside simple rules: {error}")
            return
        if trial is None:
            return
        if trial.behind:
            self.reasons.insert(0, trial.verdict)
            self.progress.update(len(self.reasons), trial.verdict)
        else:
            self.say(trial.verdict)

    def several_tasks(self) -> tuple[Any, str | None]:
        """Choose among models of several tasks."""
        _, task = self.process
        others = [name for name in self.data.tasks if name != task]
        self.say(f"There are several tasks: {task}, to be predicted, and {', '.join(others)}.")
        kernel = self.kernel(self.process)
        mine = self.data.select(task=task)
        if len(mine) > 1:
            met = self.overlap(mine)
            if met and self.bias(kernel, mine):
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
        found = {}
        for name, model in models.items():
            try:
                found[name] = scores_of(model, train, test, self.key, None)["crps"]
            except FAILURES:
                found[name] = np.inf
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
        tried = _kernels(observed)
        found = {
            name: self.evidence(MRGP(kernel=k), observed).with_prior for name, k in tried.items()
        }
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

        Of a network it is a stretch of time at all places, in which nothing is taken apart.
        """
        if self.network:
            return stretch(Dataset(observed), WHOLE)
        size = max(min(SAMPLE, most // len(observed)), most // (4 * len(observed)))
        return Dataset(observed).batch(size, self.key)

    def evidence(self, model: Any, *observed: Observations, optimiser: LBFGS = BRIEF) -> Evidence:
        """Return the log evidence of a brief exact fit to a sample, and with the log prior."""
        return greatest_evidence(model, self.sample(*observed), optimiser, self.key)

    def bias(self, kernel: Kernel | None, data: Dataset) -> bool:
        """Tell whether sources report the target on another scale, by the evidence."""
        plain = MRGP(kernel=kernel, target=self.process[0])
        lines = dataclasses.replace(plain, bias="affine")
        search = BRIEF if self.network else SEARCH
        none, affine = (
            self.evidence(model, *data.dropna(), optimiser=search) for model in (plain, lines)
        )
        self.line = affine.alone
        gain = affine.with_prior - none.with_prior
        clear = gain > CLEAR * 2 * (len(data) - 1)
        self.say(
            f"A scale and an offset of the other sources {'raise' if gain > 0 else 'do not raise'}"
            f" the log evidence{f' by {gain:.1f}' if gain > 0 else ''}:"
            f" {'they are biased' if clear else 'no sign of a bias'}."
        )
        return clear

    def beyond_a_line(self, kernel: Kernel | None) -> bool:
        """Tell whether sources differ by more than a scale and an offset, by the evidence.

        The rival gives every source a function of its own beside the one that all share. Their
        priors, which are on other scales, help both to be found and are left out when comparing.
        """
        count = len(self.data)
        own = MRGPRN(latents=count, kernel_f=kernel, kernel_w="constant")
        apart = [o.replace(task=o.name, units=None) for o in self.data.dropna()]
        gain = self.evidence(own, *apart, optimiser=SEARCH).alone - self.line
        clear = gain > CLEAR * 2 * (count - 1)
        self.say(
            f"Functions of their own {f'raise it by {gain:.1f} more' if gain > 0 else 'do not'}:"
            f" the bias is {'more than' if clear else 'well described by'} a scale and an offset."
        )
        return clear

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
            found = dependence(MRGP(kernel=kernel), self.data, key=self.key, progress=None)
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
        found = fit_weighted(MRGP(kernel=kernel), alone, self.key, optimiser=BRIEF, progress=None)
        noise = found.model.observation_noise(self.process)
        return noise / float(found.scaling.scale[0]) ** 2


def _families(data: Dataset) -> dict[str, tuple[Kernel | None, float]]:
    """Return kernels of one field to try, the default first, and by how much they must be ahead."""
    found: dict[str, tuple[Kernel | None, float]] = {"Matern-3/2": (None, 0.0)}
    if sum(map(len, data)) < FEWEST:
        return found
    geometry = Geometry.of(data.supports)
    found["RBF"] = plain_kernel(data, geometry, of=RBF), MARGIN
    regions = any(isinstance(o.support, Boxes | Polygons) for o in data)
    found["Matern-1/2"] = plain_kernel(data, geometry, of=Matern12), MARGIN
    names = tuple(geometry.names[d] for d in geometry.open if d not in geometry.covariates)
    if len(names) == 2 and len(geometry.spaces) == 1 and not regions:
        turned = Matern32(dims=names, metric="full")
        found["Matern-3/2 of a turned ellipse"] = turned, 2 * CLEAR
    return found


def _kernels(observed: Observations) -> dict[str, Kernel]:
    """Return kernels to try, the usual one first; a few values cannot tell them apart."""
    found: dict[str, Kernel] = {"Matern-3/2": Matern32(product=True)}
    if len(observed) < FEWEST:
        return found
    found["RBF"] = RBF()
    if not isinstance(observed.support, Boxes | Polygons):
        found["Matern-1/2"] = Matern12(product=True)
    support = observed.support
    clock, names = support.clock, support.input_names
    space = tuple(name for i, name in enumerate(names) if i != clock)
    if clock is not None and space:
        places = np.unique(np.delete(np.asarray(support.bounds[0]), clock, axis=1), axis=0)
        if 2 <= len(places) <= len(observed) // 2:
            each = {name: Matern12() for name in space}
            apart = separable(**{names[clock]: Matern32()}, **each)
            constant = Matern12(dims=space, product=True)
            found["a constant of each place, and Matern-3/2 in time"] = constant + apart
    return found


def _listed(found: dict[str, float], form: str = ".1f") -> str:
    return ", ".join(f"{value:{form}} ({name})" for name, value in found.items())


def meets(support: Support, other: Support) -> Bool[np.ndarray, " n"]:
    """Tell which regions see what some region of another support sees, by their bounds.

    Points never coincide, and see the same where they are nearer than the spacing of the two.

    >>> import mrgp
    >>> meets(mrgp.points([[0.5], [7.0]]), mrgp.intervals([0.0, 1.0], [1.0, 2.0])).tolist()
    [True, False]
    """
    # A source without covariates has none of their values, and sees the same places.
    known = covariate_names(support)
    columns = [d for d, name in enumerate(support.input_names) if name not in known]
    low, high = (np.asarray(side)[:, columns] for side in support.bounds)
    lower, upper = (np.asarray(side)[:, columns] for side in other.bounds)
    reach = 0.5 * np.maximum(_spacing(low, high), _spacing(lower, upper))
    # Along an input where either has width, the width says what is seen.
    wide: Any = np.median(high - low, 0) + np.median(upper - lower, 0)
    reach = np.where(wide > 0, 0.0, reach)
    sides = zip(low - reach, high + reach, strict=True)
    return np.array([np.all((lower <= b) & (upper >= a), 1).any() for a, b in sides], bool)


def _spacing(lower: Corners, upper: Corners) -> Float[np.ndarray, " d"]:
    """Return how far apart places would be along each input if they filled their bounds evenly."""
    middle = 0.5 * (lower + upper)
    count = len(np.unique(middle, axis=0))
    return np.ptp(middle, axis=0) / count ** (1.0 / middle.shape[1])
