"""A saved fit: what it says of itself, what may be asked of it, and the files beside it."""

import json
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import jax
import numpy as np

import mrgp
from mrgp._drafts import draft, write_text
from mrgp.cli.app import note
from mrgp.config.checking import read_config
from mrgp.config.names import listed, match, offer
from mrgp.config.schema import Config, ConfigError, Source
from mrgp.inference.journal import Journal
from mrgp.inference.tallies import checksum_of
from mrgp.io.files import check_numbers, read_frame
from mrgp.io.geography import find_pair, is_degrees, locate
from mrgp.io.sources import read_data, read_source
from mrgp.report.layout import Layout, plain
from mrgp.report.sites import NAMES
from mrgp.supports import Side


def account(fit: mrgp.Fit, path: Path) -> dict[str, Any]:
    """Return what a fit is, in words that JSON knows."""
    return {
        "fit": str(path),
        "recipe": type(fit.recipe).__name__,
        "status": fit.status.code,
        "reasons": list(fit.reasons),
        "warnings": list(fit.warnings),
        "inputs": list(fit.inputs),
        "values": by_process({process: used for process, (used, _) in fit.counts.items()}),
        "missing": by_process({process: lost for process, (_, lost) in fit.counts.items()}),
        "parameters": {name: value.tolist() for name, value in fit.parameters().items()},
    }


def by_process(found: dict[tuple[str, str], Any]) -> dict[str, Any]:
    """Return what is known of processes under names that JSON knows."""
    return {f"{source}, {task}": value for (source, task), value in found.items()}


def note_units(data: mrgp.Dataset, settings: Config) -> None:
    """Say of which sources the units are not known, where those of others are."""
    for observed in data:
        units, said = data.units[observed.task], settings.sources[observed.name].units
        if observed.units is None and units is not None and said is None:
            note(
                f"note: {observed.label} has no units; they are taken as {units}. Say so with"
                ' units = in the configuration, or units = "" if it has a scale of its own.'
            )


def check_asked(fit: mrgp.Fit, task: str | None, source: str | None, noise: bool) -> str | None:
    """Refuse a task or source that was not fitted; return the task of a source with one."""
    sources = dict.fromkeys(s for s, t in fit.processes if task in (None, t))
    check_fitted("--task", task, fit.tasks)
    check_fitted("--source", source, sources)
    tasks = dict.fromkeys(t for s, t in fit.processes if source in (None, s))
    if task is None and len(tasks) > 1:
        raise ValueError(f"The fit has several tasks, {listed(tasks)}: say which with --task.")
    if noise and source is None and len(sources) > 1:
        raise ValueError(f"--noise is a source's: say whose with --source, {listed(sources)}.")
    return task or next(iter(tasks))


def check_beside(
    fit: mrgp.Fit, task: str, source: str | None, noise: bool, given: dict[str, Any]
) -> None:
    """Refuse exposures and trials that values of a source have not, or that new ones lack."""
    if source is None and noise:
        source = next(s for s, t in fit.processes if t == task)
    process = str(source), task
    successes = source is not None and fit.likelihoods[process].domain == "successes"
    needed = {"--exposure": process in fit.exposed, "--trials": successes}
    for option, value in given.items():
        if value is not None and source is None:
            raise ConfigError(f"{option} is of a source's values: say whose with --source.")
        if value is None and noise and needed[option]:
            raise ConfigError(
                f"--noise: the values of {source!r} had {option.strip('-')}, and new ones need it"
                f" too: add {option}, a number, or a column of the table of places."
            )


def beside_rows(given: dict[str, str | None], table: Any, path: Path | None) -> dict[str, Any]:
    """Return the exposure and the trials that options give: numbers, or columns of a table."""
    asked = {option: text for option, text in given.items() if text is not None}
    return {option.strip("-"): _row(option, text, table, path) for option, text in asked.items()}


def _row(option: str, text: str, table: Any, path: Path | None) -> Any:
    if table is not None and text in table:
        return check_numbers(table[text], f"{path}: column {text!r}").to_numpy()
    try:
        return float(text)
    except ValueError:
        pass
    if table is None:
        raise ConfigError(
            f"{option} {text!r} is no number; columns are those of --at or --polygons."
        )
    raise ConfigError(
        f"{option} {text!r} is neither a number nor a column of {path}; it has {offer(text, table)}"
    )


def check_fitted(option: str, name: str | None, fitted: Collection[str]) -> None:
    """Refuse a name that is not among those that were fitted."""
    if name is not None and name not in fitted:
        raise ConfigError(f"{option} {name!r} was not fitted; the fit has {offer(name, fitted)}")


def beside(fit: Path) -> Path:
    """Return the file that keeps a fit's configuration."""
    return fit.with_name(fit.name + ".toml")


def keep_config(config: Path, settings: Config, kept: Path) -> None:
    """Write a configuration beside a fit; from there, too, its files are found."""
    text = config.read_text(encoding="utf-8-sig")
    if kept.resolve().parent != config.resolve().parent:
        folder = _seen_from(kept.resolve().parent, config.resolve().parent / settings.folder)
        # Keys of all stand before the first table.
        head, begin, rest = f"\n{text}".partition("\n[")
        head = re.sub(r"(?m)^\s*folder\s*=.*\n?", "", head)
        text = f"folder = {json.dumps(folder, ensure_ascii=False)}\n{head}{begin}{rest}"
    write_text(kept, text)


def _seen_from(here: Path, there: Path) -> str:
    try:
        return Path(os.path.relpath(there, here)).as_posix()
    except ValueError:
        # Another drive has no relative path.
        return there.resolve().as_posix()


def journal_of(out: Path, settings: Config, data: mrgp.Dataset) -> Journal:
    """Return the journal of a fit that will be written to a file."""
    what = settings.model_dump_json(include={"model", "weights", "key"})
    mark = [what, str(checksum_of(data)), mrgp.__version__, jax.__version__, np.__version__]
    return Journal(out.with_name(out.name + ".journal"), "\n".join(mark))


def begun(out: Path, book: Journal, data: mrgp.Dataset, resume: bool) -> mrgp.Fit | None:
    """Return a fit to go on with, where there is one; a journal of this fit is taken up."""
    if not resume:
        if book.path.exists():
            note(f"note: {book.path} has a fit that was stopped; --resume would go on with it.")
        return None
    if book.read():
        note(f"note: going on with {book.path}")
        return None
    if not out.is_file():
        note("note: there is nothing to go on with; the fit begins anew.")
        return None
    found = mrgp.load(out)
    if not found.has_data(data):
        raise ValueError(f"--resume: {out} is a fit of other data; leave --resume out.")
    return found


def config_of(fit: Path) -> Config | None:
    """Return the configuration of a fit, where it is kept."""
    return read_config(beside(fit)) if beside(fit).is_file() else None


def fitted_data(path: Path, fit: mrgp.Fit) -> mrgp.Dataset | None:
    """Return the data of a fit, where the files that its configuration names still have them."""
    try:
        config = config_of(path)
        data = None if config is None else read_data(config)
    except (ConfigError, OSError, ValueError, TypeError) as error:
        note(f"note: the data of the fit cannot be read again: {str(error).splitlines()[0]}")
        return None
    if data is None or fit.has_data(data):
        return data
    note("note: the files of the fit's configuration have other values now; they are not shown.")
    return None


def sites_beside(path: Path, fit: mrgp.Fit) -> Any:
    """Return the names of sites, where files of the fit's configuration have a column of them."""
    import pandas as pd

    try:
        config = config_of(path)
        sources = () if config is None else config.sources.values()
        tables = [_sites(s, fit) for s in sources if s.kind == "table" and s.x]
        shapes = [_shapes(s, fit) for s in sources if s.kind == "shapes"]
        found = [table for table in (*shapes, *tables) if table is not None]
    except (ConfigError, OSError, ValueError, TypeError):
        return None
    return pd.concat(found, ignore_index=True) if found else None


def _sites(source: Source, fit: mrgp.Fit) -> Any:
    """Return the places of a table and their names, where it has a column of each."""
    table, layout = read_frame(source.file), Layout.of(fit)
    name = next((c for n in NAMES for c in table.columns if str(c).lower() == n), None)
    if name is None or name in source.x or not set(source.x) <= set(table.columns):
        return None
    known = match(source.x, fit.inputs)
    across = [layout.names[d] for d in layout.across]
    if not set(across) <= set(known.values()):
        return None
    places = table[[*known, name]].rename(columns=known | {name: "site"}).drop_duplicates()
    if source.crs and not is_degrees(source.crs):
        pair = [known[source.x[i]] for i in find_pair(source.x, source.crs, str(source.file))]
        x, y = (np.asarray(places[column], np.float64) for column in pair)
        sides = locate(Side("x", x, x), Side("y", y, y), source.crs, str(source.file))
        # What is east need not have come first.
        for side in sides:
            places[side.name] = plain(side.middle, side.axis)
    return places


def _shapes(source: Source, fit: mrgp.Fit) -> Any:
    """Return the middles of shapes and their names, the first text that tells them apart."""
    import pandas as pd

    frame, layout = read_frame(source.file), Layout.of(fit)
    texts = [c for c in frame.columns if str(frame[c].dtype) in ("object", "str", "string")]
    texts.sort(key=lambda c: str(c).lower() not in NAMES)
    name = next((c for c in texts if frame[c].is_unique and frame[c].notna().all()), None)
    if name is None:
        return None
    bounds = (frame if frame.crs is None else frame.to_crs("EPSG:4326")).bounds
    middles = (0.5 * (bounds[f"min{d}"] + bounds[f"max{d}"]) for d in "xy")
    across = [layout.names[d] for d in layout.across]
    return pd.DataFrame({**dict(zip(across, middles, strict=False)), "site": frame[name]})


def read_values(path: Path, fit: mrgp.Fit, file: Path, source: str | None) -> mrgp.Dataset:
    """Read values of sources that were fitted: all of a configuration, or of a file like one's."""
    if file.suffix == ".toml":
        values = read_data(read_config(file), scored=True)
    else:
        config = config_of(path)
        if config is None:
            raise ConfigError(
                f"{beside(path)} is not there: give a configuration instead of {file}."
            )
        check_fitted("--source", source, config.sources)
        name = source or next(iter(config.sources))
        Source.check_suffix(file)
        found = config.sources[name].model_copy(update={"file": file})
        values = mrgp.Dataset([read_source(name, found, config, scored=True)])
    for observed in values:
        if observed.process not in fit.processes:
            raise ConfigError(
                f"{file}: {observed.label} was not fitted; the fit has {fit.processes}."
            )
    return values


def draw(
    found: mrgp.Prediction, path: Path, data: mrgp.Dataset | None, exceedance: float | None
) -> None:
    """Draw a prediction into a file, with the data that the fit keeps of its task."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    shown = data if data is not None and found.task in data.tasks else None
    figure = found.plot(shown, exceedance=exceedance)
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft(path) as named:
        figure.savefig(named, dpi=130)
    plt.close(figure)
