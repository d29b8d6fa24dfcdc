"""The reference: every public name stands in it, with an example that runs."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import mrgp

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
ROOMS = re.findall(r"^::: (\S+)", PAGE, re.MULTILINE)
FRONT_DOOR = re.findall(r"^Front door: (.*)$", PAGE, re.MULTILINE)


def has_example(thing):
    """Tell whether a docstring, or that of a method, has an example."""
    own = vars(thing).values() if inspect.isclass(thing) else ()
    methods = (part for part in own if inspect.isroutine(part) or isinstance(part, property))
    return any(">>>" in (part.__doc__ or "") for part in (thing, *methods))


def names_of(room):
    module = importlib.import_module(room)
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [(name, getattr(module, name)) for name in listed]
    own = ((n, v) for n, v in vars(module).items() if getattr(v, "__module__", None) == room)
    return [(n, v) for n, v in own if not n.startswith("_") and callable(v)]


def test_every_name_of_the_front_door_is_listed_under_its_room():
    listed = [name for line in FRONT_DOOR for name in re.findall(r"`(\w+)`", line)]
    assert sorted(listed) == sorted(mrgp.__all__)


@pytest.mark.parametrize("name", mrgp.__all__)
def test_every_name_of_the_front_door_lives_in_a_room_of_the_reference(name):
    thing = getattr(mrgp, name)
    assert any(thing is found for room in ROOMS for _, found in names_of(room)), name


@pytest.mark.parametrize("name", mrgp.__all__)
def test_every_name_of_the_front_door_has_an_example(name):
    assert ">>>" in (getattr(mrgp, name).__doc__ or "")


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_of_a_room_has_a_docstring_and_an_example(room):
    lacking = set()
    for name, thing in names_of(room):
        if not (inspect.isclass(thing) or inspect.isroutine(thing)):
            continue
        assert inspect.getdoc(thing), f"{room}.{name} has no docstring"
        if not has_example(thing):
            lacking.add(name)
    assert not lacking, f"{room}: give these an example that runs"
