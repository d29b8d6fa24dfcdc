"""A room imports only rooms above it; siblings do not know one another."""

import ast
from pathlib import Path

import pytest

import mrgp

ROOT = Path(mrgp.__file__).parent
ROOMS = [
    {"_types", "_compiled"},
    {"_linalg"},
    {"parameters"},
    {"supports"},
    {"kernels"},
    {"data"},
    {"gp"},
    {"likelihoods"},
    {"models"},
    {"inference"},
    {"prediction"},
    {"evaluation", "plotting"},
    {"config"},
    {"io"},
    {"selection"},
    {"datasets"},
    {"experiments"},
    {"report"},
    {"sklearn"},
    {"cli"},
]
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}
FREE = {"__init__", "cli"}
# Convenience methods may reach downstairs inside the method: (module, function). A configuration
# has the description of a model that experiments have.
ALLOWED: set[tuple[str, str | None]] = {
    ("config", None),
    ("data", "plot"),
    ("data", "to_frame"),
    ("inference", "diagram"),
    ("inference", "plot"),
    ("inference", "prediction"),
    ("inference", "scores"),
    ("inference", "_fit_chosen"),
    ("data", "to_grid"),
    ("inference", "predict"),
    ("prediction", "plot"),
    ("prediction", "to_frame"),
    ("prediction", "to_grid"),
}


def room_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(tree):
    """Yield (room, enclosing function or None) for every import of mrgp in a module."""
    functions = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for inner in ast.walk(node):
                functions.setdefault(inner, node.name)
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mrgp":
            parts = node.module.split(".")
            names = [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [
                alias.name.split(".")[1] for alias in node.names if alias.name.startswith("mrgp.")
            ]
        for name in names:
            yield name, functions.get(node)


MODULES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_room_imports_only_rooms_above_it(path):
    room = room_of(path)
    if room in FREE:
        return
    assert room in LEVEL, f"{room} has no place in the house"
    for other, function in imported_rooms(ast.parse(path.read_text())):
        if other == room or (room, function) in ALLOWED:
            continue
        assert other in LEVEL, f"{path.name} imports {other}, which has no place in the house"
        assert LEVEL[other] < LEVEL[room], f"{path.name} of {room} imports {other} from below"


def test_the_checker_sees_a_wrong_import():
    wrong = ast.parse("from mrgp.models import MRGP\nimport mrgp.cli\nfrom mrgp import inference")
    assert [room for room, _ in imported_rooms(wrong)] == ["models", "cli", "inference"]


def test_files_stay_readable():
    lengths = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in MODULES}
    assert {name: n for name, n in lengths.items() if n > 400} == {}
