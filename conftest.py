"""Strict settings for everything that tests and doctests run: no silent dtype promotion."""

import contextlib
import ctypes
import gc
import itertools
import os
import time
from importlib.metadata import version
from pathlib import Path

# Compiled functions are kept beside pytest's own cache, for all workers and for the next run.
_CACHE = Path(__file__).parent / ".pytest_cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
# Tests compile much and compute little: the compiler does the least it can.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
# Later compilers end the process where they do not know a flag.
if version("jax").startswith("0.10."):
    os.environ.setdefault(
        "XLA_FLAGS",
        "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
    )
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")

import jax  # noqa: E402
import jaxtyping  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# The same examples in every run; HYPOTHESIS_PROFILE=explore looks for others.
settings.register_profile("same", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture
def as_users_see_it():
    """Switch the run-time type checks of the tests off: users meet the library's own errors."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def browser():
    """The one browser of a process of tests."""
    from browsing import running

    yield from running()


def pytest_collection_modifyitems(items):
    """Count the examples in docstrings among the thorough tests."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.add_marker(pytest.mark.thorough)


# Compilers make and keep many objects: looking through all of them often would take long.
gc.set_threshold(50_000, 20, 50)
MOST_MAPS, MOST_PAGES = 25_000, 500_000
"""Of 65,530 memory maps a process may have; of pages of 4 kB, half of what a worker may take."""
LONG = 1.0
"""The seconds from which on a test may have compiled much."""


_tests_done = itertools.count(1)


@pytest.fixture(autouse=True)
def _forget_compiled_functions():
    """Give back what was compiled before it is too much, after long tests and each tenth."""
    start = time.perf_counter()
    yield
    maps, memory = Path("/proc/self/maps"), Path("/proc/self/statm")
    short = next(_tests_done) % 10 and time.perf_counter() - start < LONG
    if short or not maps.exists():
        return
    pages = int(memory.read_text().split()[1])
    if pages > MOST_PAGES or maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)
