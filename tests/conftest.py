"""Tests run side by side, so each takes one thread unless it asks for more, and none spins while it waits."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
