"""The page "What has been tried": tables made of rows, and their places on it."""

from pathlib import Path

from judging import judged

PAGE = Path(__file__).parents[1] / "docs" / "tried.md"
BEGIN, END = "<!-- figures: {} -->", "<!-- end of figures: {} -->"
HEADINGS = ["tried", "inputs", "answered", "told in a sentence", "wrong", "slowest", "memory"]


def table(header, rows):
    """Return a table of Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def soak_table(found):
    """Return what was tried, as a table."""
    rows = []
    for one in found:
        numbers = [one["inputs"], one["answered"], one["told"], len(one["wrong"])]
        size = f"{one['bytes'] / 1e9:.2f} GB" if one["bytes"] else ""
        plain = one["part"] in ("writers", "api")
        label = one["what"] if plain else f"{one['part']}: {one['what']}"
        rows.append([label, *map("{:,}".format, numbers), f"{one['slowest']:.1f} s", size])
    return table(HEADINGS, rows)


def calibration_table(found):
    """Return coverage by model and kind of question."""
    rows = [
        [
            one["what"],
            what,
            (about := judged(ranks))["replicates"],
            *(f"{about[f'coverage_{level}']:.2f}" for level in (50, 80, 95)),
            f"{about['uniform_p']:.2f}",
            "yes" if about["holds"] else "no",
        ]
        for one in found
        for what, ranks in one["ranks"].items()
    ]
    levels = [f"{level} % holds" for level in (50, 80, 95)]
    return table(["model", "of", "replicates", *levels, "p of uniform ranks", "in its band"], rows)


def about(found, rows):
    """Say with which seeds, at which commits and for how long rows were made."""
    seeds = sorted({seed for one in found for seed in one["seeds"] if seed is not None})
    commits = dict.fromkeys(row["commit"] for row in rows if row.get("commit"))
    minutes = sum(row.get("took", 0.0) for row in rows) / 60
    several = "seeds" if len(seeds) > 1 else "seed"
    said = f"With the {several} {', '.join(map(str, seeds))}" if seeds else "Without seeds"
    if commits:
        said += f", at {', '.join(commits)}"
    return f"{said}; all parts together took {minutes:.0f} minutes.\n\n"


def write(name, text):
    """Put a table in its place on the page."""
    page, begin, end = PAGE.read_text(), BEGIN.format(name), END.format(name)
    head, _, rest = page.partition(begin)
    PAGE.write_text(f"{head}{begin}\n\n{text}\n{end}{rest.partition(end)[2]}")
