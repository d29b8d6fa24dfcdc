"""Files: saved fits."""

from mrgp.io.checkpoint import load, save

__all__ = ["load", "save"]
