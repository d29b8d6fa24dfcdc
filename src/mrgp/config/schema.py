"""What a configuration says, and where in its text it says something wrong."""

import difflib
import re
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from mrgp.experiments import ModelSpec

TABLES = (".csv", ".parquet")
GRIDS = (".nc", ".zarr")
SHAPES = (".geojson", ".gpkg", ".shp")


class ConfigError(ValueError):
    """A configuration that cannot be used as it is."""


class Source(BaseModel):
    """A file with the values of a source, and what its columns or variables are.

    A table (CSV, Parquet) has columns: `x` of points, `start` and `end` of windows, `y` of values.
    A grid (NetCDF, Zarr) has a `variable`; `width` gives cells a width along dimensions, `instant`
    names those along which they have none. Shapes (GeoJSON, GeoPackage, Shapefile) have `y` and a
    geometry; polygons become nodes `spacing` kilometres apart.

    >>> Source(file="a.csv", y="no2", x=["time", "lon", "lat"], crs="EPSG:4326").kind
    'table'
    """

    model_config = ConfigDict(extra="forbid")
    file: Path
    task: str | None = None
    units: str | None = None
    y: str | None = None
    x: list[str] = Field(default_factory=list)
    start: str | None = None
    end: str | None = None
    variable: str | None = None
    width: dict[str, float] | None = None
    instant: list[str] = Field(default_factory=list)
    spacing: float | None = Field(default=None, gt=0)
    crs: str | bool | None = None
    noise_variance: float | str | None = None
    values: Literal["mean", "sum"] = "mean"

    @field_validator("file")
    @classmethod
    def check_suffix(cls, file: Path) -> Path:
        """Refuse a file of a kind that is not read."""
        known = (*TABLES, *GRIDS, *SHAPES)
        if file.suffix.lower() not in known:
            raise ValueError(f"{file} ends in {file.suffix!r}; files end in {', '.join(known)}")
        return file

    @property
    def kind(self) -> Literal["table", "grid", "shapes"]:
        """What sort of file it is."""
        suffix = self.file.suffix.lower()
        return "table" if suffix in TABLES else "grid" if suffix in GRIDS else "shapes"


class Config(BaseModel):
    """Sources by name, the first of which is the target, and the model to fit.

    `inputs` is the order of the inputs; `model` is "auto" or a recipe with its settings; `weights`
    are composite weights, found by the rule of `mrgp.composite_weights` if "auto".
    """

    model_config = ConfigDict(extra="forbid")
    sources: dict[str, Source] = Field(min_length=1)
    inputs: list[str] | None = None
    time_unit: Literal["s", "min", "h", "D"] = "h"
    model: Literal["auto"] | ModelSpec = "auto"
    weights: Literal["auto"] | dict[str, float] | None = None
    key: int = Field(default=0, ge=0)


def read_config(path: Path) -> Config:
    """Read and check a configuration; files are relative to its folder."""
    if not path.is_file():
        raise ConfigError(f"There is no configuration {path}. `mrgp init FILES` writes one.")
    text = path.read_text()
    try:
        content: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    try:
        config = Config.model_validate(content)
    except ValidationError as error:
        raise ConfigError(_explain(path, text, error)) from None
    for source in config.sources.values():
        source.file = path.parent / source.file
    return config


def _explain(path: Path, text: str, error: ValidationError) -> str:
    """Return what is wrong first, at its line, with the nearest name that would be right."""
    problems = error.errors()
    # Unions report every branch; an unknown key is the plainest of all complaints.
    first = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    loc = [str(part) for part in first["loc"] if part not in ("literal['auto']", "ModelSpec")]
    where = f"{path}, line {_line(text, loc)}" if _line(text, loc) else str(path)
    key = ".".join(loc)
    if first["type"] == "extra_forbidden":
        known = _known(loc)
        near = difflib.get_close_matches(loc[-1], known, 1)
        hint = f" Did you mean {near[0]!r}?" if near else f" Known are {', '.join(known)}."
        return f"{where}: there is no key {key!r}.{hint}"
    if first["type"] == "missing":
        return f"{where}: the key {key!r} is missing."
    reason = first["msg"].removeprefix("Value error, ").removesuffix(".")
    return f"{where}: {key}: {reason}."


def _known(loc: list[str]) -> list[str]:
    model = {"sources": Source, "model": ModelSpec}.get(loc[0], Config) if len(loc) > 1 else Config
    return list(model.model_fields)


def _line(text: str, loc: list[str]) -> int | None:
    """Return the line on which a key stands, or the table that should have it."""
    lines, table, best = text.splitlines(), "", None
    for number, line in enumerate(lines, 1):
        header = re.match(r"\s*\[\s*([^\]]+?)\s*\]", line)
        if header:
            table = header[1].replace('"', "")
            if loc[: len(table.split("."))] == table.split("."):
                best = number
            continue
        name = re.match(r'\s*"?([\w.-]+)"?\s*=', line)
        if name and [*(table.split(".") if table else []), *name[1].split(".")] == loc:
            return number
    return best
