"""Tests run side by side, so each takes one thread unless it asks for more, and none spins while it waits."""

import os
import signal

import pytest
from hypothesis import settings

from ablate import weights

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# A shell that runs the tests in the background has Ctrl-C ignored, which commands started here would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long one example takes says nothing on a machine that does other work: the suite as a whole has a limit.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(autouse=True)
def models_are_found_anew():
    """A model's folder is remembered by its name as typed, which in another test's folder is another model."""
    weights.find.cache_clear()
