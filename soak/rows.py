"""Rows of what was tried: kept one by one in a file of lines, merged from runs at any times."""

import json
import subprocess
from pathlib import Path

KEPT = Path(__file__).parent / "results" / "rows.jsonl"
SUMS = ("inputs", "answered", "told")
MOST = ("slowest", "bytes")


def commit():
    """Return the commit whose code is tried, with a plus where it was changed since."""
    command = ["git", "-C", str(KEPT.parents[2]), "describe", "--always", "--dirty=+"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def keep(row, file):
    """Append a row as it comes, so that a run that is stopped keeps what it has."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(json.dumps(row) + "\n")


def kept(file):
    """Return the rows of a file; a line that was cut while it was written is left out."""
    found = []
    for line in file.read_text().splitlines() if file.is_file() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def merged(rows):
    """Join rows of the same part: counts are summed, the slowest and largest kept, with all seeds.

    What was tried of one part at several times is as much as all of it together. Ranks of a
    calibration are put one after another.
    """
    found = {}
    for row in rows:
        key = row["part"], row["what"]
        if key not in found:
            found[key] = {**row, "seeds": [row.get("seed")]}
            continue
        one = found[key]
        one["seeds"] = [*one["seeds"], row.get("seed")]
        one["wrong"] = [*one["wrong"], *row["wrong"]]
        one |= {name: one[name] + row[name] for name in SUMS if name in one}
        one |= {name: max(one[name], row[name]) for name in MOST if name in one}
        if "ranks" in row:
            both = one["ranks"], row["ranks"]
            names = {name: None for several in both for name in several}
            one["ranks"] = {n: [r for each in both for r in each.get(n, [])] for n in names}
            one["notes"] = [*one.get("notes", []), *row.get("notes", [])]
    return list(found.values())
