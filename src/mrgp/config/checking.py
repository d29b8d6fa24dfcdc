"""Read a configuration, and say where in its text something is wrong."""

import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from mrgp.config.described import Described
from mrgp.config.names import did_you_mean, listed
from mrgp.config.schema import Config, ConfigError, Covariate, Source
from mrgp.config.text import read_toml

WORDS = {
    "string_type": "must be text in quotes",
    "path_type": "must be the name of a file, in quotes",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": 'must be a list, such as ["lon", "lat"]',
    "dict_type": "must be a table, such as [sources.NAME]",
    "model_type": 'must be a table, such as [model] with recipe = "MRGP"',
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be {le} or less",
    "literal_error": "must be {expected}",
    "too_short": "needs one at least",
}
LINE = re.compile(r'\s*(?:\[(?P<table>[^\]]+)\]|(?P<key>"[^"]*"|[\w.-]+)\s*=)')
SHOWN = 80
"""How many characters of a key or a value a sentence repeats."""

CALLED = re.compile(r"(\w+)\.__init__\(\) got an unexpected keyword argument ('\w+')")


def read_config(path: Path) -> Config:
    """Read and check a configuration; files are relative to its folder, or to that it names."""
    if not path.is_file():
        what = "is a folder, not a configuration" if path.is_dir() else "is not there"
        raise ConfigError(f"The configuration {path} {what}. `mrgp init FILES` writes one.")
    if path.suffix.lower() != ".toml":
        raise ConfigError(
            f"{path} is no configuration, which ends in .toml. `mrgp init {path}` writes one."
        )
    try:
        text, content = read_toml(path)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    try:
        config = Config.model_validate(content)
    except ValidationError as error:
        raise ConfigError(_explain(path, text, content, error)) from None
    for source in (*config.sources.values(), *config.covariates.values()):
        source.file = path.parent / config.folder / source.file
    return config


def _explain(path: Path, text: str, content: dict[str, Any], error: ValidationError) -> str:
    """Return what is wrong first, at its line, with the nearest name that would be right."""
    problems = [(p, _keys(content, p)) for p in error.errors()]
    # A choice of forms reports each of them; an unknown key, or the deepest complaint, is meant.
    problem, loc = max(problems, key=lambda p: (_plainness(p[0]), len(p[1])))
    line = _line(text, loc)
    where = f"{path}, line {line}" if line else str(path)
    key = _short(".".join(loc))
    if problem["type"] == "extra_forbidden":
        known = _known(loc)
        hint = did_you_mean(loc[-1], known) or f" Known are {listed(known, 30)}."
        return f"{where}: there is no key {key!r}.{hint}"
    if problem["type"] == "missing":
        return f"{where}: the key {key!r} is missing."
    return f"{where}: {key}: {_reason(problem)}"


def _plainness(problem: Any) -> int:
    """Rank an unknown key first, and a table where a word was expected last."""
    word_wanted = problem["type"] == "literal_error" and isinstance(problem["input"], dict)
    return 2 if problem["type"] == "extra_forbidden" else int(not word_wanted)


def _reason(problem: Any) -> str:
    template = WORDS.get(problem["type"])
    if template is None:
        text = problem["msg"].removeprefix("Value error, ").removesuffix(".")
        return CALLED.sub(r"\1 has no setting \2", text) + "."
    given, context = problem["input"], problem.get("ctx", {})
    hint = ""
    if problem["type"] == "literal_error" and isinstance(given, str):
        hint = did_you_mean(given, re.findall(r"'([^']*)'", context["expected"]))
    shown = "a table" if isinstance(given, dict) else _repeated(given)
    return f"{template.format(**context)}; got {shown}.{hint}"


def _repeated(given: Any) -> str:
    try:
        return _short(repr(given))
    except ValueError:
        # Python writes no whole number of very many digits.
        return "a number of thousands of digits"


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _keys(content: Any, problem: Any) -> list[str]:
    """Return the keys at which a problem is, without the forms that were tried there."""
    keys: list[str] = []
    for part in problem["loc"]:
        if isinstance(content, dict) and part in content:
            content = content[part]
            keys.append(str(part))
    if problem["type"] == "missing":
        keys.append(str(problem["loc"][-1]))
    return keys


def _known(loc: list[str]) -> list[str]:
    models: dict[str, type[BaseModel]] = {"sources": Source, "model": Described}
    models["covariates"] = Covariate
    model = models.get(loc[0], Config) if len(loc) > 1 else Config
    return list(model.model_fields)


def _line(text: str, loc: list[str]) -> int | None:
    """Return the line on which a key stands, or the table that should have it."""
    table: list[str] = []
    best, depth = None, 0
    for number, line in enumerate(text.splitlines(), 1):
        found = LINE.match(line)
        if found is None:
            continue
        keys = (found["table"] or found["key"]).strip().replace('"', "").split(".")
        table = keys if found["table"] else table
        keys = table if found["table"] else [*table, *keys]
        shared = min(len(keys), len(loc))
        if keys[:shared] == loc[:shared] and shared > depth:
            best, depth = number, shared
    return best
