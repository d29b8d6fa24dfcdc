"""Draw the picture of docs/report.md: `python tests/report/picture.py`."""

import shutil
import tempfile
from pathlib import Path

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "report.png"


def draw(path):
    """Report on the simulated city, open the page, and save what is to be seen first."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    import mrgp
    from mrgp.datasets import city
    from mrgp.report import write_report

    fit = mrgp.fit(mrgp.MRGP(), city().data)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        page = Path(folder) / "report.html"
        write_report(fit, page, title="NO2 in a simulated city")
        browser = started.chromium.launch(executable_path=shutil.which("chromium"))
        shown = browser.new_page(viewport={"width": 1100, "height": 1320})
        shown.goto(f"file://{page}")
        shown.wait_for_selector("html[data-complete]", state="attached")
        shown.screenshot(path=path)
        browser.close()
    Image.open(path).quantize(128).save(path, optimize=True)


if __name__ == "__main__":
    draw(PICTURE)
