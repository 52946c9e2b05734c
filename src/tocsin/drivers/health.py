"""Health: whether a broker runs and can take events, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tocsin.errors import TocsinError

CLOCK_JUMP_S = 1.0


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the broker runs, whether it can take events, and what is wrong with it."""

    live: bool
    ready: bool
    reasons: list[str] = field(default_factory=list)


def health_of(
    failure: TocsinError | None,
    full: str | None,
    jump_s: float,
    complaints: list[str],
    *,
    stopping: bool,
) -> Health:
    """How a broker is that met this failure, and whose wall clock was set by so much.

    `full` says why there is no room for events: then it answers, and is not ready. `complaints` are
    reported, and keep nobody from publishing.
    """
    reasons = list(complaints)
    if failure is not None:
        reasons.append(str(failure))
    if full is not None:
        reasons.append(full)
    if stopping:
        reasons.append("the broker is stopping")
    if abs(jump_s) > CLOCK_JUMP_S:
        reasons.append(
            f"the wall clock was set by {jump_s:+.1f} s since the start; "
            "leases and retries go by the time that really passed"
        )
    ready = failure is None and full is None and not stopping
    return Health(failure is None, ready, reasons)
