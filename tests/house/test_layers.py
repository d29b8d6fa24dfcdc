"""A room imports only rooms above it; nobody after `models` asks for the class of a model."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import mrgp

ROOT = Path(mrgp.__file__).parent
ROOMS = [
    {"_hush"},
    {"cache", "_types", "_compiled", "_drafts", "_extras", "devices"},
    {"_cluster"},
    {"_linalg"},
    {"_lapack"},
    {"parameters"},
    {"supports"},
    {"kernels"},
    {"links"},
    {"distributions"},
    {"likelihoods"},
    {"data"},
    {"gp"},
    {"models"},
    {"inference"},
    {"weighting"},
    {"prediction"},
    {"evaluation"},
    {"checks"},
    {"plotting"},
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
# Convenience methods may reach downstairs inside the method: (module, function).
ALLOWED: set[tuple[str, str]] = {
    ("checks", "plot"),
    ("data", "plot"),
    ("data", "to_frame"),
    ("data", "to_grid"),
    ("inference", "bias_map"),
    ("inference", "diagram"),
    ("inference", "effects"),
    ("inference", "leave_one_out"),
    ("inference", "plot"),
    ("inference", "predict"),
    ("inference", "warnings"),
    ("prediction", "explore"),
    ("prediction", "plot"),
    ("prediction", "predict"),
    ("prediction", "to_frame"),
    ("prediction", "to_grid"),
}
CLASSES = (
    "MRGP|MRGPRN|MRDGP|Cascade|CenterPoint|Dependent|VBAgg|LinearModel|Network|Tree"
    "|Posterior|NetworkPosterior"
)


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


def asks(text):
    """Return the lines of a module that ask for the class of a model, a recipe or a state."""
    by_class = rf"isinstance\([^)]*\b({CLASSES})\b|\bis_deep\b"
    by_name = r"(get|has)attr\((model|recipe|fit|fit\.\w+|state|built|inner|found\.model)\b"
    pattern = re.compile(f"{by_class}|{by_name}")
    return [line.strip() for line in text.splitlines() if pattern.search(line)]


def test_nobody_asks_for_the_class_of_a_model():
    found = {
        str(path.relative_to(ROOT)): lines
        for path in MODULES
        if room_of(path) != "models"
        and path.name != "checkpoint.py"
        and (lines := asks(path.read_text()))
    }
    assert found == {}
    assert asks("if isinstance(fit.model, Tree):\n  getattr(recipe, 'model', 1)") != []


def test_every_module_has_a_name_of_its_own():
    names = Counter(path.name for path in MODULES if path.name not in ("__init__.py",))
    assert {name for name, count in names.items() if count > 1} == set()


def test_files_stay_readable():
    # The cap is on ideas in a file; beyond this many lines it holds several.
    lengths = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in MODULES}
    assert {name: n for name, n in lengths.items() if n > 450} == {}
