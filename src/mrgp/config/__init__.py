"""Configurations: which files hold which sources, and what to fit to them."""

from mrgp.config.checking import read_config
from mrgp.config.guessing import guess
from mrgp.config.places import grid_support, read_places
from mrgp.config.reading import read_data, read_source
from mrgp.config.schema import Config, ConfigError, Source
from mrgp.config.writing import check_out, write_prediction

__all__ = [
    "Config",
    "ConfigError",
    "Source",
    "check_out",
    "grid_support",
    "guess",
    "read_config",
    "read_data",
    "read_places",
    "read_source",
    "write_prediction",
]
