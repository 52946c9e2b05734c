"""The check of rights: what somebody need not get, when the time of day goes back and forth."""

from __future__ import annotations

from tocsin.event.event import Event
from tocsin.sim.checks.access import AccessModel
from tocsin.sim.checks.grants import NOBODY, RuleRecord, Watched
from tocsin.sim.checks.log import LogCheck
from tocsin.sim.rights import EVERYTHING, SUBSCRIBE, Right
from tocsin.sim.world import World

ENDS_NS = 100


class Site:
    """A broker with a rule for everybody that ends, and one subscription."""

    def __init__(self) -> None:
        self.log = LogCheck(10)
        self.model = AccessModel(World(1), self.log, {})
        self.watched = Watched(holder=NOBODY)
        self.model.watch(self.watched)
        right = Right(frozenset((SUBSCRIBE,)), EVERYTHING, expires_ns=ENDS_NS)
        self.model.add_rule(RuleRecord(id="1", right=right, principal="anonymous"))

    def at(self, now_ns: int) -> None:
        """The broker does something at this time of day."""
        self.model.now_ns = lambda: now_ns
        self.model.tick()

    def store(self) -> int:
        self.log.last += 1
        self.log.events[self.log.last] = Event(str(self.log.last), "/test", "test")
        return self.log.last

    def need_not_get(self, seq: int) -> bool:
        return self.model.is_exempt(self.watched, seq)


def test_what_is_stored_while_a_right_holds_is_owed() -> None:
    site = Site()
    site.at(50)

    assert not site.need_not_get(site.store())


def test_what_was_stored_after_a_right_had_ended_is_not_owed_when_the_clock_is_set_back() -> None:
    site = Site()
    site.at(50)
    site.at(ENDS_NS + 1)
    stored = site.store()

    site.at(60)

    assert site.need_not_get(stored)
    assert not site.need_not_get(site.store())


def test_what_still_waited_when_a_right_ended_is_not_owed_either() -> None:
    site = Site()
    site.at(50)
    stored = site.store()
    site.at(ENDS_NS)
    site.at(60)

    assert site.need_not_get(stored)
