"""How much a router does for one input: the lines of code that it runs, the same each time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

ROUTING = "tocsin/overlay/routing/"


def lines_run(act: Callable[[], object]) -> int:
    """Lines of the routing code; a turn of a loop counts as often as it is run."""
    count = 0

    def in_routing(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return in_routing

    def entered(frame: FrameType, event: str, argument: object) -> Any:
        return in_routing if ROUTING in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
