"""A command waits a little for a broker on this machine that does not listen yet.

So that `tocsin serve & tocsin pub ...` works as typed. Only commands do, and all their attempts
together wait no longer than TOCSIN_BROKER_WAIT_S: a program that uses the library decides itself.
"""

from __future__ import annotations

import os
import time
from math import isfinite
from typing import Final

from tocsin.errors import BadSetting

WAIT_VARIABLE: Final = "TOCSIN_BROKER_WAIT_S"
WAIT_S: Final = 5.0  # a broker listens within two, and later on a busy machine
PAUSE_S: Final = 0.05

_began_s: float | None = None


def begin() -> None:
    """This process is a command: it waits for its broker."""
    global _began_s
    _began_s = time.monotonic()


def wait_s() -> float:
    """How long a command waits, as the environment says."""
    text = os.environ.get(WAIT_VARIABLE, "")
    try:
        seconds = float(text) if text else WAIT_S
    except ValueError:
        seconds = -1.0
    if not isfinite(seconds) or seconds < 0:
        raise BadSetting(
            f"{WAIT_VARIABLE} is {text[:40]!r}, not a number of seconds",
            remedy=f"Set it to the seconds that commands wait for a broker, such as {WAIT_S:g}.",
        )
    return seconds


def is_over(host: str) -> bool:
    """True if a refused connection is final; else it may be tried again after PAUSE_S."""
    return _began_s is None or not _is_local(host) or time.monotonic() - _began_s >= wait_s()


def explanation(host: str) -> str:
    """What to add to the reason why a broker could not be reached."""
    has_waited = _began_s is not None and _is_local(host) and wait_s() > 0
    return f" (waited {wait_s():g} s for it)" if has_waited else ""


def _is_local(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
