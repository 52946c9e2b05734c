"""What peers do wrong is logged, but a flood of it does not fill the disk with lines."""

from __future__ import annotations

from typing import Any

from tocsin.services.limited_log import LINE_S, LINES_MAX, LimitedLog


class Runtime:
    """A clock that stands still unless it is set, and the lines that were written."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.lines: list[tuple[str, dict[str, object]]] = []

    def elapsed_s(self) -> float:
        return self.now_s

    def note(self, level: str, message: str, **fields: object) -> None:
        self.lines.append((message, fields))


def test_a_flood_is_cut_and_how_much_was_left_out_is_logged() -> None:
    runtime: Any = Runtime()
    log = LimitedLog(runtime)
    runtime.now_s = 100.0

    for number in range(LINES_MAX + 500):
        log.warn(f"bad {number}", peer="p")
    assert len(runtime.lines) == LINES_MAX

    runtime.now_s = 100.0 + LINE_S * 1.5
    log.warn("one more", peer="p")
    assert runtime.lines[-1] == ("one more", {"peer": "p", "left_out": 500})


def test_a_peer_that_does_little_wrong_is_always_logged() -> None:
    runtime: Any = Runtime()
    log = LimitedLog(runtime)

    for number in range(5 * LINES_MAX):
        runtime.now_s = number * LINE_S
        log.warn(f"bad {number}")

    assert len(runtime.lines) == 5 * LINES_MAX
