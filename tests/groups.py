"""Which cases of a test `make test` runs; `make test-all` runs all of them."""

import pytest


def rest_thorough(cases, *first):
    """Return the cases of a parametrised test, all but the first ones marked thorough.

    The first ones go by their text, or by their position where cases are more than a text.
    """
    found = []
    for number, case in enumerate(cases):
        name = case if isinstance(case, str) else number
        values = case if isinstance(case, tuple) else (case,)
        marks = () if name in first else pytest.mark.thorough
        found.append(pytest.param(*values, marks=marks))
    return found
