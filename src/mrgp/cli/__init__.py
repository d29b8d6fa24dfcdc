"""The command line: demo, init, fit, predict, evaluate, report, info, data, run."""

from mrgp.cli import data, demo, fits, reporting, running
from mrgp.cli.app import app, command, main
from mrgp.cli.running import parse_seeds

__all__ = ["app", "command", "data", "demo", "fits", "main", "parse_seeds", "reporting", "running"]
