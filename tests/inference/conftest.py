"""What is compiled while a test runs."""

import jax
import pytest


@pytest.fixture
def compiled():
    """Return the names of programs compiled, as they come."""
    names = []

    def listen(event, _duration, **given):
        if event.endswith("backend_compile_duration"):
            names.append(given.get("fun_name"))

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)
