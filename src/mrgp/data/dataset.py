"""A dataset: observation processes that see one world."""

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np

from mrgp.data.harmony import common_axes, harmonise, warn_of_plain_numbers
from mrgp.data.observations import Observations
from mrgp.data.processes import Process
from mrgp.supports import Axis, Field, Support, same_fields, with_common_tables


class Dataset:
    """Observation processes over the same inputs, each pair (source, task) once.

    >>> import mrgp
    >>> x = mrgp.points([[0.0], [1.0]])
    >>> mrgp.Dataset([mrgp.Observations(x, [3.0, 4.0], task="no2", name="laqn")])
    Dataset: 1 source, 1 task, inputs (x1)
      source  task  values  missing  support
      laqn    no2        2        0  Points(2 means: x1 0 to 1)
    """

    observations: tuple[Observations, ...]

    def __init__(self, observations: Iterable[Observations] | Observations):
        if isinstance(observations, Observations):
            observations = [observations]
        self.observations = tuple(observations)
        for item in self.observations:
            if not isinstance(item, Observations):
                raise TypeError(f"Dataset takes Observations; got {type(item).__name__}.")
        if not self.observations:
            raise ValueError("Dataset needs at least one source of observations.")
        self._check_pairs()
        self._check_units()
        self.observations = tuple(_with_common_columns(self.observations))
        self._check_covariates()
        self.observations = tuple(_with_common_axes(self._named()))
        self.observations = tuple(self._with_common_spaces())

    @property
    def processes(self) -> tuple[Process, ...]:
        """The pairs (source, task), in order."""
        return tuple(o.process for o in self.observations)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources, in order of appearance."""
        return tuple(dict.fromkeys(o.name for o in self.observations))

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks, in order of appearance."""
        return tuple(dict.fromkeys(o.task for o in self.observations))

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return self.observations[0].support.input_names

    @property
    def supports(self) -> tuple[Support, ...]:
        """The support of each process."""
        return tuple(o.support for o in self.observations)

    @property
    def clock(self) -> int | None:
        """The input that is time, if one is."""
        return self.observations[0].support.clock

    @property
    def axes(self) -> tuple[Axis | None, ...] | None:
        """What the numbers of each input mean, where a source says so."""
        return next((s.axes for s in self.supports if s.axes is not None), None)

    @property
    def spaces(self) -> tuple[tuple[str, ...], ...]:
        """The inputs that are directions of one space, by name.

        >>> import mrgp
        >>> x = mrgp.points([[0.0, 51.0]], inputs=("lon", "lat"))
        >>> Dataset([mrgp.Observations(x, [3.0])]).spaces
        (('lon', 'lat'),)
        """
        support = self.observations[0].support
        return tuple(tuple(support.input_names[d] for d in space) for space in support.spaces)

    @property
    def covariates(self) -> tuple[Field, ...] | None:
        """What the covariates among the inputs were sampled from."""
        return self.observations[0].support.covariates

    def with_covariates(
        self, source: Any, names: Any = None, *, inputs: Any = None, method: str = "linear"
    ) -> "Dataset":
        """Add the same covariates to every source (see `Support.with_covariates`)."""
        if hasattr(source, "items") and not hasattr(source, "dims"):
            raise TypeError(
                "Dataset.with_covariates: the rows of a table belong to one source. Give them"
                " there, as points(x, covariates=frame) or from_frame(..., covariates=[...])."
            )
        field = Field.of(source, names, inputs, method)
        return Dataset([_on(o, field.extend) for o in self])

    @property
    def units(self) -> dict[str, str | None]:
        """The units of each task, where a source gives them."""
        given = {o.task: o.units for o in reversed(self.observations) if o.units is not None}
        return {task: given.get(task) for task in self.tasks}

    def __len__(self) -> int:
        return len(self.observations)

    def __iter__(self) -> Iterator[Observations]:
        return iter(self.observations)

    def __getitem__(self, process: Process | str) -> Observations:
        """Return the observations of a (source, task), or of a source with one task."""
        matches = [o for o in self.observations if process in (o.process, o.name)]
        if len(matches) != 1:
            found = "several tasks" if matches else "no observations"
            raise KeyError(f"{process!r} has {found}; the processes are {self.processes}.")
        return matches[0]

    def select(self, source: Any = None, task: Any = None) -> "Dataset":
        """Keep a source, a task, or both; a list keeps several."""
        sources = _chosen(source, self.sources, "source")
        tasks = _chosen(task, self.tasks, "task")
        kept = [o for o in self if o.name in sources and o.task in tasks]
        if not kept:
            raise ValueError(f"Source {source!r} does not observe task {task!r}.")
        return Dataset(kept)

    def dropna(self) -> "Dataset":
        """Return the observed values alone."""
        return Dataset([o.dropna() for o in self])

    def collapse(self) -> "Dataset":
        """Return the center-point view: every region replaced by its centre."""
        return Dataset([_on(o, lambda support: support.collapse()) for o in self])

    def batch(self, size: int, key: Any = 0) -> "Dataset":
        """Draw up to `size` observed values of each process, without replacement."""
        if size < 1:
            raise ValueError(f"batch: size must be at least 1; got {size}.")
        return Dataset([o[np.sort(order[:size])] for o, order in self._shuffled(key)])

    def split(self, fraction: float = 0.8, key: Any = 0) -> tuple["Dataset", "Dataset"]:
        """Split the observed values of each process at random into two datasets."""
        if not 0 < fraction < 1:
            raise ValueError(f"split: fraction must lie between 0 and 1; got {fraction}.")
        first, second = [], []
        for o, order in self._shuffled(key):
            cut = round(fraction * len(o))
            if not 0 < cut < len(o):
                raise ValueError(
                    f"split: {o.label} has {len(o)} observed values, too few to split"
                    f" {fraction:g} : {1 - fraction:g}."
                )
            first.append(o[np.sort(order[:cut])])
            second.append(o[np.sort(order[cut:])])
        return Dataset(first), Dataset(second)

    def plot(self) -> Any:
        """Draw every source as what it is, cells, polygons, points or bars; return the figure.

        Coordinates are those that the user gave, degrees and dates. A task has one colour scale;
        where time varies beside two other inputs there are maps of a few times.

        >>> import mrgp
        >>> cells = mrgp.boxes([[0.0], [1.0]], [[1.0], [2.0]], inputs="day")
        >>> seen = mrgp.Observations(cells, [3.0, 4.0], task="no2", units="ppb")
        >>> Dataset([seen]).plot().axes[0].get_ylabel()
        'no2 (ppb)'
        """
        from mrgp.plotting import plot_dataset

        return plot_dataset(self)

    def _shuffled(self, key: Any) -> Iterator[tuple[Observations, np.ndarray]]:
        """Return the observed values of each process, and their rows in random order."""
        keys = jax.random.split(as_key(key), len(self.observations))
        for o, k in zip(self.dropna(), keys, strict=True):
            yield o, np.asarray(jax.random.permutation(k, len(o)))

    def _check_pairs(self) -> None:
        for i, o in enumerate(self.observations):
            if o.process in self.processes[:i]:
                raise ValueError(
                    f"{o.label}: the pair (source, task) is given twice. Join the two, or give one"
                    " of them another name=."
                )

    def _check_covariates(self) -> None:
        first = self.observations[0]
        for o in self.observations:
            had, has = (s.covariates or () for s in (first.support, o.support))
            if not same_fields(had, has):
                other = " from other fields" if _listed(had) == _listed(has) else ""
                raise ValueError(
                    f"{o.label}: the covariates are {_listed(has)}, but {first.label} has"
                    f" {_listed(had)}{other}. Add them to all sources at once with"
                    " Dataset([...]).with_covariates(...)."
                )

    def _check_units(self) -> None:
        for o in self.observations:
            expected = self.units[o.task]
            if o.units not in (None, expected):
                raise ValueError(
                    f"{o.label}: units {o.units!r} differ from {expected!r}, which another source"
                    ' of the task uses. Convert one of them, or give units="" to a source that'
                    " has a scale of its own."
                )

    def _named(self) -> list[Observations]:
        """Give all sources the names of the inputs that one of them has."""
        first = self.observations[0]
        for o in self.observations:
            if o.support.dimension != first.support.dimension:
                raise ValueError(
                    f"{o.label}: the support has {o.support.dimension} inputs, but {first.label}"
                    f" has {first.support.dimension}. All sources share one set of inputs."
                )
        named = [o for o in self.observations if o.support.inputs is not None]
        for o in named:
            if o.support.inputs != named[0].support.inputs:
                raise ValueError(
                    f"{o.label}: the inputs are {o.support.inputs}, but {named[0].label} has"
                    f" {named[0].support.inputs}. Give all sources the same columns in one order."
                )
        if not named:
            return list(self.observations)
        names = named[0].support.input_names
        return [
            o if o.support.inputs else o.replace(support=rename_inputs(o.support, names))
            for o in self.observations
        ]

    def _with_common_spaces(self) -> Iterator[Observations]:
        """Give all sources the spaces that one of them was given, or refuse those that differ."""
        given = [o for o in self.observations if o.support.space is not None]
        for o in given:
            if o.support.spaces != given[0].support.spaces:
                mine, others = (_in_groups(x.support) for x in (o, given[0]))
                raise ValueError(
                    f"{o.label}: its spaces are {mine}, but {given[0].label} has {others}. Give all"
                    " sources the same space=, or one of them alone."
                )
        for o in self.observations:
            space = given[0].support.space if given else None
            alike = o.support.space == space
            yield o if alike else o.replace(support=dataclasses.replace(o.support, space=space))

    def __repr__(self) -> str:
        head = ("source", "task", "values", "missing", "support")
        rows = [head] + [
            (o.name, o.task, str(o.count + o.missing), str(o.missing), repr(o.support))
            for o in self
        ]
        a, b, c, d, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
        lines = [f"  {r[0]:<{a}}  {r[1]:<{b}}  {r[2]:>{c}}  {r[3]:>{d}}  {r[4]}" for r in rows]
        counts = f"{_count(self.sources, 'source')}, {_count(self.tasks, 'task')}"
        return "\n".join([f"Dataset: {counts}, inputs ({', '.join(self.inputs)})", *lines])


def _chosen(wanted: Any, known: tuple[str, ...], noun: str) -> tuple[str, ...]:
    if wanted is None:
        return known
    names = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    for name in names:
        if name not in known:
            raise ValueError(f"No {noun} is named {name!r}; the {noun}s are {known}.")
    return names


def as_key(key: Any) -> jax.Array:
    """Accept an integer wherever a JAX random key is meant.

    >>> bool(as_key(7) == jax.random.key(7))
    True
    """
    if isinstance(key, int | np.integer):
        return jax.random.key(int(key))
    if not isinstance(key, jax.Array):
        raise TypeError(f"key= takes an integer or a JAX random key; got {key!r}.")
    return key


def as_seed(key: Any) -> int:
    """Return a NumPy seed for an integer or a JAX random key.

    >>> as_seed(7), as_seed(jax.random.key(7))
    (7, 7)
    """
    if isinstance(key, int | np.integer):
        return int(key) % 2**32
    return int(np.asarray(jax.random.key_data(as_key(key))).ravel()[-1])


def _with_common_axes(observations: list[Observations]) -> Iterator[Observations]:
    """Bring all sources to the first axis that is known of each input, and say where none is."""
    axes = common_axes([o.support for o in observations])
    for o in observations:
        warn_of_plain_numbers(o.support, axes, o.label, "other sources have", stacklevel=4)
        support = harmonise(o.support, axes, o.label)
        yield o if support is o.support else o.replace(support=support)


def _with_common_columns(observations: tuple[Observations, ...]) -> Iterator[Observations]:
    """Write columns of tables in one code book, and say which sources lack some."""
    made, said = with_common_tables(
        [o.support for o in observations], [o.label for o in observations]
    )
    for words in said:
        warnings.warn(f"{words} their effects.", stacklevel=4)
    for o, support in zip(observations, made, strict=True):
        yield o if support is o.support else o.replace(support=support)


def _on(o: Observations, change: Callable[[Support], Support]) -> Observations:
    """Change the support of a source, of rows that are stored when they are read."""
    stored = None if o.stored is None else o.stored.moved(change)
    return o.replace(support=change(o.support), stored=stored)


def rename_inputs(support: Support, names: tuple[str, ...]) -> Support:
    """Give a support the names of its inputs.

    >>> import mrgp
    >>> rename_inputs(mrgp.points([[0.0]]), ("hour",))
    Points(1 mean: hour 0 to 0)
    """
    return dataclasses.replace(support, inputs=names)


def _listed(fields: tuple[Field, ...]) -> str:
    return ", ".join(name for field in fields for name in field.names) or "none"


def _in_groups(support: Support) -> str:
    groups = (", ".join(support.input_names[d] for d in space) for space in support.spaces)
    return " and ".join(f"({group})" for group in groups) or "none"


def _count(items: tuple[str, ...], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"
