"""Which cases of a test `make test` runs, which `make test-all`, and which `make slow`."""

import pytest


def rest_thorough(cases, *first, slow=()):
    """Return the cases of a parametrised test, all but the first ones marked thorough, or slow.

    The first ones go by their text, or by their position where cases are more than a text.
    """
    found = []
    for number, case in enumerate(cases):
        name = case if isinstance(case, str) else number
        values = case if isinstance(case, tuple) else (case,)
        rest = pytest.mark.slow if name in slow else pytest.mark.thorough
        marks = () if name in first else rest
        found.append(pytest.param(*values, marks=marks))
    return found
