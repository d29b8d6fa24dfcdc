"""Configurations: which files hold which sources, and what to fit to them."""

from mrgp.config.checking import read_config
from mrgp.config.guessing import guess
from mrgp.config.places import far_from_data, grid_support, places_of
from mrgp.config.reading import read_data, read_source
from mrgp.config.schema import Config, ConfigError, Source
from mrgp.config.writing import check_out, write_prediction

__all__ = [
    "Config",
    "ConfigError",
    "Source",
    "check_out",
    "far_from_data",
    "grid_support",
    "guess",
    "places_of",
    "read_config",
    "read_data",
    "read_source",
    "write_prediction",
]
