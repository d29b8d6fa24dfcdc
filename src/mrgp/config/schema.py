"""What a configuration says."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from mrgp.config.described import Described

TABLES = (".csv", ".parquet")
GRIDS = (".nc", ".zarr")
SHAPES = (".geojson", ".gpkg", ".shp")


class ConfigError(ValueError):
    """A configuration that cannot be used as it is."""


class Source(BaseModel):
    """A file with the values of a source, and what its columns or variables are.

    A table (CSV, Parquet) has columns: `x` of points, `start` and `end` of windows, `y` of values.
    A grid (NetCDF, Zarr) has a `variable`; `width` gives cells a width along dimensions, in time a
    duration such as "1h"; `instant` names those along which they have none. Shapes (GeoJSON,
    GeoPackage, Shapefile) have `y` and a geometry; polygons become nodes `spacing` kilometres
    apart. `likelihood` is how values scatter, by its word; `exposure` and `trials` are numbers or
    columns. Values at or below a detection `limit`, or at or above an `upper_limit`, are censored.
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
    start: str | None = None
    end: str | None = None
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

    `folder` is where files that are not given in full lie, as seen from the configuration's own;
    `inputs` is the order of the inputs; `space` names those that are directions of one space, where
    their names do not say so; `model` is "auto" or a recipe with its settings; `weights`
    are composite weights, found by the rule of `mrgp.composite_weights` if "auto".
    """

    model_config = ConfigDict(extra="forbid")
    sources: dict[str, Source] = Field(min_length=1)
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
