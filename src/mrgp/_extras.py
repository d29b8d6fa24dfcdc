"""Packages that only some calls need, and that come with an extra."""

import importlib
from typing import Any


def needed(package: str, otherwise: str) -> Any:
    """Import a package, or say what needs it and where it comes from.

    >>> needed("nowhere", 'Maps need nowhere: pip install "mrgp[geo]".')
    Traceback (most recent call last):
    ImportError: Maps need nowhere: pip install "mrgp[geo]".
    """
    try:
        return importlib.import_module(package)
    except ImportError:
        raise ImportError(otherwise) from None
