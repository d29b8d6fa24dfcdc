"""A recipe in a few words: what is set, arrays by their shape."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np


def in_words(recipe: Any) -> str:
    """Return the settings of a recipe that differ from the defaults.

    >>> import mrgp
    >>> in_words(mrgp.MRGP(inducing=np.zeros((40, 2)), bias="offset"))
    "MRGP(inducing=array of shape (40, 2), bias='offset')"
    """
    given = ((field, getattr(recipe, field.name)) for field in dataclasses.fields(recipe))
    told = (f"{f.name}={_brief(value)}" for f, value in given if _is_other(value, f.default))
    return f"{type(recipe).__name__}({', '.join(told)})"


def _brief(value: Any) -> str:
    """Return a setting in a few words.

    >>> _brief({"sat": np.zeros((4, 2))})
    "{'sat': array of shape (4, 2)}"
    """
    if isinstance(value, np.ndarray | jax.Array) and value.ndim:
        return f"array of shape {value.shape}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_brief(part)}" for key, part in value.items()) + "}"
    return repr(value)


def _is_other(value: Any, default: Any) -> bool:
    if value is default:
        return False
    plain = isinstance(value, str | int | float | tuple | None) or dataclasses.is_dataclass(value)
    return not (plain and type(value) is type(default) and repr(value) == repr(default))
