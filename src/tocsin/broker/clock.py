"""Clock: what time it is, as far as the broker can be sure of it.

The `now_ns` of every call is steady: it starts with what the machine's clock said when the process
began, and then counts what really passes. Retries and waits go by it. The time of day, by which
leases end and events are stamped and dropped, is `now_ns` and a shift (`State.time_ns`).

A machine's clock may be wrong, and a lease that a wrong clock ended is gone. So it is compared with
the last time that was sure, which is on disk. Past `clock_jump_s` it is in doubt:

- at the start it is AHEAD of that time: the broker was off that long, or the clock is wrong.
  Time is what the clock says, no lease ends, and nothing is dropped for its age.
- at the start it is BEHIND that time: the clock is wrong, or it was then. Time goes on from the
  last that was sure.
- it was SET while the broker runs: time goes on as it really passes.

The doubt ends when the clock is back near where it should be, or when an operator accepts it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from tocsin.broker.effects import Token
from tocsin.broker.registry import Registry
from tocsin.broker.retention import Retention
from tocsin.broker.state.state import CLOCK, State
from tocsin.event.instant import NS_PER_S

SAVED_S: Final = 300.0  # how old the time on disk may be


class Doubt(Enum):
    """Why the machine's clock is not believed."""

    AHEAD = "ahead"
    BEHIND = "behind"
    SET = "set"


class Clock:
    """Judges what the machine's clock says."""

    def __init__(self, state: State, registry: Registry, retention: Retention) -> None:
        self._state = state
        self._registry = registry
        self._retention = retention
        self.on_change: list[Callable[[], None]] = []  # called when the time of day is another
        self._expected_shift_ns = 0  # so far it should be from `now_ns`
        self._has_run = True  # since the last sure time the broker ran: what passed is known
        self.doubt: Doubt | None = None
        self.jump_ns = 0  # how far the clock is from where it should be

    def time_ns(self, now_ns: int) -> int:
        """The time of day."""
        return self._state.time_ns(now_ns)

    def lower_bound_ns(self, now_ns: int) -> int:
        """The time that it is at least. What was over by then may go, also while in doubt."""
        return min(self.time_ns(now_ns), self.expected_ns(now_ns))

    def expected_ns(self, now_ns: int) -> int:
        """The time that it is at least, by what passed since the last one that was sure."""
        return now_ns + self._expected_shift_ns

    def recover(self, last_ns: int, now_ns: int) -> None:
        """A process starts; `last_ns` is the last time that was sure, or 0 if there is none."""
        if last_ns:
            self._expected_shift_ns = last_ns - now_ns
            self._has_run = False
        self.read(now_ns, now_ns)
        self._save(now_ns)

    def read(self, wall_ns: int, now_ns: int) -> None:
        """The machine's clock says `wall_ns`. To be called every few seconds."""
        self.jump_ns = wall_ns - self.expected_ns(now_ns)
        if abs(self.jump_ns) <= self._state.options.clock_jump_s * NS_PER_S:
            if self.doubt is not None or not self._has_run:
                self._believe(wall_ns, now_ns, "the clock is trusted again", quietly=not self.doubt)
        elif self._has_run:
            self._doubt(Doubt.SET, now_ns, self._expected_shift_ns)
        elif self.jump_ns > 0:
            self._doubt(Doubt.AHEAD, now_ns, wall_ns - now_ns)
        else:
            self._doubt(Doubt.BEHIND, now_ns, self._expected_shift_ns)

    def accept(self, wall_ns: int, token: Token, now_ns: int) -> None:
        """An operator says that the clock is right; `Reply(None)` once that is on disk."""
        self._has_run = False  # so that its time is taken, also if it was set
        self._believe(wall_ns, now_ns, "an operator accepted the clock", quietly=False)
        self._state.reply_when_saved(token, None)

    def _doubt(self, doubt: Doubt, now_ns: int, shift_ns: int) -> None:
        if doubt is self.doubt:
            return
        self.doubt = doubt
        self._change(shift_ns, now_ns, holds=doubt is Doubt.AHEAD)
        self._state.note("warning", self.complaint(), clock=doubt.value)

    def _believe(self, wall_ns: int, now_ns: int, words: str, *, quietly: bool) -> None:
        shift_ns = self._expected_shift_ns if self._has_run else wall_ns - now_ns
        self.doubt, self._has_run = None, True
        self._expected_shift_ns, self.jump_ns = shift_ns, wall_ns - now_ns - shift_ns
        self._change(shift_ns, now_ns, holds=False)
        self._state.unsaved.cursors[CLOCK] = self._state.time_ns(now_ns)
        if not quietly:
            self._state.note("info", words)

    def _change(self, shift_ns: int, now_ns: int, *, holds: bool) -> None:
        state = self._state
        if (shift_ns, holds) != (state.shift_ns, state.holds):
            state.shift_ns, state.holds = shift_ns, holds
            self._registry.set_leases()
            self._retention.forget_ages()
            for listener in self.on_change:
                listener()

    def _save(self, now_ns: int) -> None:
        state = self._state
        if self.doubt in (None, Doubt.SET):
            state.unsaved.cursors[CLOCK] = state.time_ns(now_ns)
        state.timers.at(now_ns + int(SAVED_S * NS_PER_S), self._save)

    def shut_down(self, now_ns: int) -> None:
        """The last moment to write it down."""
        if self.doubt in (None, Doubt.SET):
            self._state.unsaved.cursors[CLOCK] = self._state.time_ns(now_ns)

    def complaint(self) -> str:
        """What is wrong, what is done meanwhile, and what an operator can do."""
        return "" if self.doubt is None else _SAYS[self.doubt](_far(self.jump_ns))


def _far(jump_ns: int) -> str:
    hours = abs(jump_ns) / NS_PER_S / 3600
    return f"{hours / 24:.1f} days" if hours >= 48 else f"{hours:.1f} hours"


_THEN: Final = (
    "If the clock is right, run `tocsin clock accept`. "
    "If not, set it: the broker then goes on by itself."
)
_SAYS: Final[dict[Doubt, Callable[[str], str]]] = {
    Doubt.AHEAD: lambda far: (
        f"the clock is {far} past the last time in the log: the broker was off that long, or the "
        f"clock is wrong. Meanwhile no lease ends and nothing is dropped for its age. {_THEN}"
    ),
    Doubt.BEHIND: lambda far: (
        f"the clock is {far} before the last time in the log: it is wrong now, or it was ahead "
        f"before. Meanwhile time goes on from the last time in the log. {_THEN}"
    ),
    Doubt.SET: lambda far: (
        f"the clock was set and is {far} off: leases, retention and the times of events go by the "
        f"time that really passed. {_THEN}"
    ),
}
