"""The command line: demo, init, fit, predict, evaluate, report, info, data, run."""

from mrgp.cli import data, demo, run, workflow
from mrgp.cli.app import app, command, main
from mrgp.cli.run import parse_seeds

__all__ = ["app", "command", "data", "demo", "main", "parse_seeds", "run", "workflow"]
