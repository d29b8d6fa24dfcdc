"""Configurations: which files hold which sources, and what to fit to them."""

from mrgp.config.guessing import guess
from mrgp.config.reading import read_data, read_places
from mrgp.config.schema import Config, ConfigError, Source, read_config
from mrgp.config.writing import write_prediction

__all__ = [
    "Config",
    "ConfigError",
    "Source",
    "guess",
    "read_config",
    "read_data",
    "read_places",
    "write_prediction",
]
