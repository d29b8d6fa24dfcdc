"""What the tutorials share: their arguments, and where figures and pictures go."""

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")


class Telling:
    """The arguments of a tutorial, and the folder it writes to."""

    def __init__(self, name, about):
        parser = argparse.ArgumentParser(description=about)
        parser.add_argument("--quick", action="store_true", help="less data, for a first look")
        parser.add_argument("--out", type=Path, default=Path("tutorial-output"), help="a folder")
        given = parser.parse_args()
        self.name, self.quick, self.out = name, given.quick, given.out
        self.out.mkdir(parents=True, exist_ok=True)

    def picture(self, figure, part=""):
        """Write a picture, small enough for a page."""
        path = self.out / f"{self.name}{'_' * bool(part)}{part}.png"
        figure.savefig(path, dpi=80, pil_kwargs={"optimize": True})

    def figures(self, **numbers):
        """Write the numbers that the page quotes."""
        path = self.out / f"{self.name}.json"
        path.write_text(json.dumps({k: float(v) for k, v in numbers.items()}, indent=2) + "\n")
