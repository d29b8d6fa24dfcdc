"""Write each tutorial as a notebook: `python examples/_notebooks.py [folder]`.

The page's words become Markdown cells and the sections of the script code cells, in the order of
the page; what the script does outside its sections (imports, pictures, figures) comes along. The
variable QUICK of the first cell takes less data, as `--quick` does.
"""

import json
import re
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
PAGES = EXAMPLES.parent / "docs" / "tutorials"
MARK = re.compile(r"^# --8<-- \[(start|end):(\w+)\]\n", re.MULTILINE)
INCLUDED = re.compile(r'^```\w+\n--8<-- "([^"]+)"\n```\n?', re.MULTILINE)
PICTURE = re.compile(r"^!\[.*?\]\(\.\./images/.*?\)\n?", re.MULTILINE)
SETTING = "QUICK = False  # True for less data, for a first look"
STORY = '''
class Story:
    """What the script keeps in files: a notebook shows it."""

    quick, out = QUICK, Path(".")

    def picture(self, figure, part=""):
        """Leave the figure open: it is drawn below."""

    def figures(self, **numbers):
        self.found = numbers


story = Story()
'''


def names():
    """Return the names of the tutorials."""
    return sorted(p.stem for p in EXAMPLES.glob("*.py") if not p.stem.startswith("_"))


def pieces(script):
    """Return the script in order, as pairs of a section's name, or "", and its code."""
    parts = MARK.split(script)
    found = [("", parts[0])]
    for side, name, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        found.append((name if side == "start" else "", text))
    return [(name, text.strip("\n")) for name, text in found if text.strip()]


def beginning(code):
    """Return imports without the docstring, and a story that has no command line."""
    code = re.sub(r'\A""".*?"""\n+', "", code, flags=re.DOTALL)
    code = code.replace("from _telling import Telling\n", "")
    code = re.sub(r"^story = Telling\(.*\)$", lambda _: STORY, code, flags=re.MULTILINE)
    return f"from pathlib import Path\n\n{code}"


def cells(name):
    """Return the cells of a tutorial: words of the page between the code of the script."""
    script = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    code = pieces(script)
    first, rest = beginning(code[0][1]), code[1:]
    parts = INCLUDED.split(page)
    made = [_words(parts[0]), _code(SETTING), _code(first)]
    for what, words in zip(parts[1::2], parts[2::2], strict=True):
        if what.startswith("printed/"):  # the notebook prints by itself, and then draws
            made += [_code(text) for _, text in rest]
            rest = []
        else:
            section = what.partition(":")[2]
            while rest and rest[0][0] != section:  # what stands between two sections
                made.append(_code(rest.pop(0)[1]))
            made.append(_code(rest.pop(0)[1]))
        made.append(_words(words))
    return [cell for cell in made if "".join(cell["source"]).strip()]


def _words(text):
    text = PICTURE.sub("", text).strip("\n")
    text = re.sub(r"\]\((?!http)[^)]*\)", "]", text)  # pages are not beside a notebook
    text = re.sub(r"\[([^\]]*)\]", r"\1", text)
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text):
    text = text.strip("\n").splitlines(keepends=True)
    empty = {"execution_count": None, "outputs": []}
    return {"cell_type": "code", "metadata": {}, "source": text} | empty


def notebook(name):
    """Return a tutorial in the notebook format, version 4.5."""
    numbered = [{"id": f"cell-{k}"} | cell for k, cell in enumerate(cells(name))]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": numbered, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def write(folder):
    """Write all notebooks into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names():
        text = json.dumps(notebook(name), indent=1, ensure_ascii=False) + "\n"
        (folder / f"{name}.ipynb").write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote {folder / name}.ipynb\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("notebooks"))
