"""Make the pictures of the pages by the code on the pages.

Run as `python docs/make_images.py [page ...]`; without names all pages with pictures are made. The
Python blocks of a page run in order, and each picture is the figure that is current where it is
shown. A picture may thus be changed by changing the code above it, and in no other way; where no
figure is current, as for the screenshot of a report, the picture stays.
"""

import contextlib
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).resolve().parent
PART = re.compile(
    r"^```python\n(?P<code>.*?)^```|^!\[.*?\]\((?P<image>images/.*?\.png)\)",
    re.DOTALL | re.MULTILINE,
)
RESOLUTION = 90


def make(page: Path) -> list[str]:
    """Run a page, and write its pictures; return their names."""
    namespace: dict[str, Any] = {}
    made: list[str] = []
    for part in PART.finditer(page.read_text(encoding="utf-8")):
        if part["code"] is not None:
            plt.close("all")
            exec(compile(part["code"], page.name, "exec"), namespace)
        elif plt.get_fignums():
            plt.gcf().savefig(DOCS / part["image"], dpi=RESOLUTION)
            made.append(part["image"])
    plt.close("all")
    return made


def pages() -> list[Path]:
    """Return the pages that have pictures."""
    return [p for p in sorted(DOCS.glob("*.md")) if "](images/" in p.read_text(encoding="utf-8")]


if __name__ == "__main__":
    chosen = [DOCS / f"{name}.md" for name in sys.argv[1:]] or pages()
    for page in chosen:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            sys.stdout.write("".join(f"wrote docs/{image}\n" for image in make(page)))
