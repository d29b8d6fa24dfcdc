"""What a configuration says."""

from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, field_validator

from mrgp.config.described import Described

TABLES = (".csv", ".parquet")
GRIDS = (".nc", ".zarr")
SHAPES = (".geojson", ".gpkg", ".shp")


class ConfigError(ValueError):
    """A configuration that cannot be used as it is."""


def duration(text: str) -> Any:
    """Return a length of time such as "1h" or "-1D", a pandas Timedelta that is not zero.

    >>> duration("1D").total_seconds() / 3600
    24.0
    """
    try:
        length = pd.Timedelta(text)
    except ValueError:
        length = pd.NaT
    if pd.isna(length) or length == pd.Timedelta(0):
        raise ConfigError(f'{text!r} is no duration, such as "1h", "30min" or "1D"')
    return length


class Source(BaseModel):
    """A file with the values of a source, and what its columns or variables are.

    A table (CSV, Parquet) has columns: `x` of points, `start` and `end` of windows, one or several,
    `y` of values. A grid (NetCDF, Zarr) has a `variable`; `instant` names dimensions along which
    cells have no width. `width` gives cells one along dimensions, or columns of `x`, in time a
    duration such as "1h". Shapes (GeoJSON, GeoPackage, Shapefile) have `y` and a geometry; polygons
    become nodes `spacing` kilometres apart. `window` says that values are means over so long from
    their times on, or up to them where it is negative. Without `units` they are those of the file,
    and `""` is none.
    `likelihood` is how values scatter, by its word; `exposure` and `trials` are numbers or columns.
    Values at or below a detection `limit`, or at or above an `upper_limit`, are censored.
    `covariates` are columns that describe the places: numbers, and text as categories.

    >>> Source(file="a.csv", y="no2", x=["time", "lon", "lat"], crs="EPSG:4326").kind
    'table'
    """

    model_config = ConfigDict(extra="forbid")
    file: Path
    task: str | None = None
    units: str | None = None
    y: str | None = None
    x: list[str] = Field(default_factory=list)
    start: list[str] = Field(default_factory=list)
    end: list[str] = Field(default_factory=list)
    window: str | None = None
    variable: str | None = None
    width: dict[str, float | str] | None = None
    instant: list[str] = Field(default_factory=list)
    spacing: float | None = Field(default=None, gt=0)
    crs: str | bool | None = None
    noise_variance: float | str | None = None
    likelihood: Literal[
        "gaussian", "student_t", "poisson", "negative_binomial", "binomial", "gamma", "log_normal"
    ] = "gaussian"
    exposure: float | str | None = None
    trials: float | str | None = None
    limit: float | None = Field(default=None, gt=0)
    upper_limit: float | None = None
    values: Literal["mean", "sum"] = "mean"
    covariates: list[str] = Field(default_factory=list)

    @field_validator("start", "end", mode="before")
    @classmethod
    def as_columns(cls, given: Any) -> Any:
        """Accept the name of one column for a list of it."""
        return [given] if isinstance(given, str) else given

    @field_validator("window")
    @classmethod
    def check_window(cls, window: str | None) -> str | None:
        """Refuse what is no duration."""
        if window is not None:
            duration(window)
        return window

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


class Covariate(BaseModel):
    """A known field on a grid, which is looked up wherever the sources and predictions lie.

    Between the centres of cells `method` is "linear" or "nearest"; text is categories.

    >>> Covariate(file="hills.nc", variable="height").method
    'linear'
    """

    model_config = ConfigDict(extra="forbid")
    file: Path
    variable: str | None = None
    method: Literal["linear", "nearest"] = "linear"

    @field_validator("file")
    @classmethod
    def check_suffix(cls, file: Path) -> Path:
        """Refuse a file that is no grid."""
        if file.suffix.lower() not in GRIDS:
            raise ValueError(
                f"{file} ends in {file.suffix!r}; grids end in {', '.join(GRIDS)}. Columns of a"
                " table are covariates = of its source"
            )
        return file


class Config(BaseModel):
    """Sources by name, the first of which is the target, and the model to fit.

    `covariates` are grids of what is known everywhere, by name.
    `folder` is where files that are not given in full lie, as seen from the configuration's own;
    `inputs` is the order of the inputs; `space` names those that are directions of one space, where
    their names do not say so; `model` is "auto" or a recipe with its settings; `weights`
    are composite weights, found by the rule of `mrgp.composite_weights` if "auto".
    """

    model_config = ConfigDict(extra="forbid")
    sources: dict[str, Source] = Field(min_length=1)
    covariates: dict[str, Covariate] = Field(default_factory=dict)
    folder: Path = Path()
    inputs: list[str] | None = None
    space: list[str] | list[list[str]] | None = None
    time_unit: Literal["s", "min", "h", "D"] = "h"
    model: Literal["auto"] | Described = "auto"
    weights: Literal["auto"] | dict[str, float] | None = None
    key: int = Field(default=0, ge=0)

    @field_validator("model", mode="before")
    @classmethod
    def check_model(cls, model: Any) -> Any:
        """Say where weights stand."""
        if isinstance(model, dict) and "weights" in model:
            raise ValueError("weights = has no meaning here; weights = stands before the tables")
        return model

    @field_validator("weights")
    @classmethod
    def check_weights(cls, weights: Any, info: Any) -> Any:
        """Refuse weights of sources that are not there."""
        known = info.data.get("sources", {})
        unknown = [n for n in weights if n not in known] if isinstance(weights, dict) else []
        if unknown and known:
            raise ValueError(f"{unknown[0]!r} is no source; the sources are {', '.join(known)}")
        return weights
