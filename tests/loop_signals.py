"""Signals of whichever loop runs, for parts that are tested without a node."""

from __future__ import annotations

import asyncio

from tocsin.drivers.runtime import LoopSignal


class LoopSignals:
    """Makes them when they are needed."""

    def signal(self) -> LoopSignal:
        return LoopSignal(asyncio.get_running_loop())
