"""Fits to report on, and a browser to look at the pages with."""

import dataclasses
from functools import cached_property
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

import mrgp
from mrgp.datasets import city
from mrgp.report import write_report
from report.cases import COAST, biased, coast, degrees, hours, london, missing
from report.hands import choose

QUICK = mrgp.LBFGS(max_steps=3, starts=1, candidates=0)


@pytest.fixture(scope="session")
def plotly():
    if find_spec("plotly") is None:
        missing("plotly is not installed")


@pytest.fixture(scope="session")
def browser(plotly, browser):
    return browser


class Shown:
    """A page in a browser that is not connected, and all that it said and asked for."""

    def __init__(
        self,
        browser,
        path,
        width=1280,
        height=900,
        axe=False,
        scheme="light",
        measured=False,
        touch=False,
    ):
        # Axe is a script of its own: the policy of the page would keep it out.
        size = {"width": width, "height": height}
        look = {"color_scheme": scheme, "has_touch": touch, "is_mobile": touch}
        self.context = browser.new_context(viewport=size, bypass_csp=axe, **look)
        self.context.set_offline(True)
        self.page = self.context.new_page()
        if measured:
            self.meter = self.context.new_cdp_session(self.page)
            self.meter.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.page.set_default_timeout(60_000)
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.address = f"file://{path}"
        self.page.goto(self.address, wait_until="commit")
        self.page.wait_for_selector("html[data-complete]", state="attached")

    @property
    def seconds(self):
        """What the page has taken of the CPU so far."""
        metrics = self.meter.send("Performance.getMetrics")["metrics"]
        return {metric["name"]: metric["value"] for metric in metrics}["TaskDuration"]

    def settle(self):
        """Wait until the next drawing is there."""
        self.page.evaluate(
            "() => new Promise((done) =>"
            " requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))"
        )

    def layer(self, name):
        self.page.check(f"input[value={name}]")
        self.settle()
        return self.values()

    def values(self):
        """Return what the map shows, as plotly has it."""
        rows = self.page.evaluate("() => byId('view').data[0].z.map((row) => Array.from(row))")
        return np.array(rows)

    def type(self, threshold):
        self.page.fill("#threshold", str(threshold))
        self.settle()

    @property
    def readout(self):
        return self.page.inner_text("#readout")

    @property
    def wide(self):
        return self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


@pytest.fixture(scope="session")
def opened(browser):
    """Open pages, each once, and close them at the end."""
    pages = {}

    def show(path, **size):
        key = (str(path), *size.items())
        if key not in pages:
            pages[key] = Shown(browser, path, **size)
        return pages[key]

    yield show
    for page in pages.values():
        page.context.close()


class Fits:
    """Fits of every kind that a page can show, each made once, in a few steps."""

    @cached_property
    def city(self):
        return mrgp.fit(mrgp.MRGP(), city(0).data, optimiser=QUICK)

    @cached_property
    def curve(self):
        return mrgp.fit(mrgp.MRGP(), hours(), optimiser=QUICK)

    @cached_property
    def deep_data(self):
        return biased()

    @cached_property
    def deep(self):
        return mrgp.fit(mrgp.MRDGP(target="target"), self.deep_data, optimiser=QUICK)

    @cached_property
    def coast_parts(self):
        return coast()

    @cached_property
    def coast(self):
        model = mrgp.MRGP(bias="affine", target="laqn")
        fit = mrgp.fit(model, self.coast_parts[1], optimiser=QUICK)
        return dataclasses.replace(fit, doubts=("Mind the <gap>.",))

    @cached_property
    def coast_grid(self):
        west, east, south, north = COAST
        times = pd.date_range("2022-02-19T06:00", periods=4, freq="6h")
        return degrees(np.linspace(west, east, 9), np.linspace(south, north, 7), times)

    @cached_property
    def two_tasks(self):
        x = np.random.default_rng(0).uniform(0, 4, (12, 2))
        support = mrgp.points(x, inputs=("east", "north"))
        seen = [
            mrgp.Observations(support, x[:, 0], name="s", task="no2", units="ug/m3"),
            mrgp.Observations(support, 2 * x[:, 1], name="s", task="pm10", units="ug/m3"),
        ]
        model = mrgp.MRGPRN(latents=1, kernel_w="constant")
        return mrgp.fit(model, mrgp.Dataset(seen), optimiser=QUICK)

    @cached_property
    def london_frame(self):
        return london()[0]

    @cached_property
    def london_data(self):
        return london()[1]

    @cached_property
    def london(self):
        return mrgp.fit(mrgp.MRGP(), self.london_data, optimiser=QUICK)


@pytest.fixture(scope="session")
def fits():
    return Fits()


@pytest.fixture(scope="session")
def coast_page(fits, plotly, tmp_path_factory):
    found = tmp_path_factory.mktemp("coast") / "coast.html"
    write_report(fits.coast, found, grid=fits.coast_grid, sites=fits.coast_parts[2])
    return found


@pytest.fixture
def shown(coast_page, opened):
    found = opened(coast_page)
    choose(found, "site", value="")
    choose(found, "span", value="0")
    choose(found, "limit", value="")
    choose(found, "marks", value="values")
    found.page.uncheck("#noise")
    found.page.check("input[name=colours][value=all]")
    found.page.locator("#slider").fill("0")
    found.layer("mean")
    yield found
    assert found.said == []
    # What is saved comes from the page itself.
    assert [url for url in found.asked if not url.startswith("blob:")] == [found.address]
