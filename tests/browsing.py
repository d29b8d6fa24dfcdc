"""A browser to look at pages with: what runs, and that it must be there where CI asks for it."""

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def missing(reason):
    """Skip, or fail where a browser must be there."""
    if os.environ.get("MRGP_REQUIRE_BROWSER") == "1":
        pytest.fail(f"{reason}, and MRGP_REQUIRE_BROWSER=1 asks for it")
    pytest.skip(reason)


def running() -> Iterator[Any]:
    """Yield a browser, of which a process of tests has one: another would find a loop running."""
    if find_spec("playwright") is None:
        missing("playwright is not installed")
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing(f"none of {', '.join(NAMES)} is installed")
    with sync_playwright() as started:
        one = started.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield one
        one.close()
