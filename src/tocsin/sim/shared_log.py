"""A log in memory that the brokers of a world share, and what goes wrong with it.

The log and the state of a broker are apart, so a process may end between the two, and either may
have no room. They outlive the process, as a server for them would.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tocsin.broker.commit.numbering import Applied
from tocsin.broker.effects import Commit
from tocsin.errors import DiskFull
from tocsin.event.stored import Append, StateChange
from tocsin.sim.checks.log import LogCheck
from tocsin.sim.faults.disk import FaultyDisk
from tocsin.sim.world import World
from tocsin.store.memory import MemoryLog, MemoryReader, MemoryState, SharedEvents
from tocsin.store.split import SplitStore
from tocsin.store.vfs import PowerCut

FULL: Final = 0.02  # the chance that there is no room, each time
BEFORE: Final = 5  # a process that ends so early in a commit has written nothing
BETWEEN: Final = 10  # and here the events and not the state


class SharedLogCheck(LogCheck):
    """Sees every append when the log applies it, whichever broker it is of, and whether or not
    that broker lives to be told."""

    def writing(self, commit: Commit) -> None:
        """What the log did not confirm, it has not applied."""

    def written(self, commit: Commit, applied: Applied, first_seq: int) -> None:
        """It is known by then."""

    def applied(self, append: Append, applied: Applied, first_seq: int) -> None:
        super().written(Commit(append, StateChange()), applied, first_seq)


class SharedLog:
    """The log of one world."""

    def __init__(self, world: World, duplicates_window: int) -> None:
        self.world = world
        self.events = SharedEvents()
        self.check = SharedLogCheck(duplicates_window)
        self.random = Random(f"shared log {world.seed}")


class _Log(MemoryLog):
    """One broker's way to it."""

    def __init__(self, log: SharedLog, disk: FaultyDisk) -> None:
        super().__init__(log.events)
        self._log = log
        self._disk = disk

    def append(self, append: Append) -> Applied:
        _may_end(self._disk)
        _may_be_full(self._log)
        applied = super().append(append)
        self._log.check.applied(append, applied, self.first_seq)
        if _ends(self._disk, BETWEEN):
            self._log.world.seen["shared log: a process ended before its state was saved"] += 1
            raise PowerCut
        return applied


class _State(MemoryState):
    """What one broker keeps beside it."""

    def __init__(self, log: SharedLog, disk: FaultyDisk) -> None:
        super().__init__()
        self._log = log
        self._disk = disk

    def save(self, change: StateChange, applied: Applied) -> None:
        _may_end(self._disk)
        _may_be_full(self._log)
        super().save(change, applied)


class SharedLogClient:
    """One broker's log and state, over all its processes."""

    def __init__(self, log: SharedLog, disk: FaultyDisk) -> None:
        self.check = log.check
        self._log = _Log(log, disk)
        self._state = _State(log, disk)

    def open(self) -> SplitStore:
        log, state = self._log, self._state
        return SplitStore(log, state, lambda: MemoryReader(log.shared, state))


def _ends(disk: FaultyDisk, within: int) -> bool:
    """True if the process that writes is to end so early in its commit."""
    return disk.cut_at is not None and disk.cut_at - disk.operations <= within


def _may_end(disk: FaultyDisk) -> None:
    if _ends(disk, BEFORE):
        raise PowerCut


def _may_be_full(log: SharedLog) -> None:
    if not log.world.calm and log.random.random() < FULL:
        log.world.seen["shared log: no room"] += 1
        raise DiskFull("there is no room", remedy="Make some.")
