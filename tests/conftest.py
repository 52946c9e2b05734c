"""Settings that every test shares."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

# A shell has what it starts in the background ignore interrupts, and so would every command that a
# test starts, of which some are interrupted to see what they do.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Test rooms import their own small harnesses as `room.harness`.
sys.path.insert(0, str(Path(__file__).parent))

# Deadlines are for machines of one's own; on a shared one they only make noise.
settings.register_profile(
    "tocsin", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("tocsin")
