"""DiscoveryCheck: what brokers send each other to find resources, and which requests they keep.

It looks at a core after each call, and there only at what the call may have changed. The numbers
are those of the invariants in docs/simulator.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from tocsin.event.instant import NS_PER_MS
from tocsin.overlay.discovery.effects import Effect, Send
from tocsin.overlay.discovery.one_time import OneTimeRequests
from tocsin.overlay.discovery.paths import Path
from tocsin.overlay.discovery.requests import ModelType
from tocsin.overlay.region import covers
from tocsin.sim.checks.channels import Channels
from tocsin.wire.link.discovery_messages import (
    Advertise,
    CoverGone,
    Discover,
    DiscoveryMessage,
    Result,
    Results,
    Unadvertise,
)

Fail = Callable[[str], None]
CLOCK_WRONG_NS = 100 * NS_PER_MS  # less than any guard time
_Link = tuple[str, str]


class Core(Protocol):
    """A broker's part in finding resources, as the check sees it."""

    one_time: OneTimeRequests

    @property
    def broker_id(self) -> str: ...

    @property
    def attempts(self) -> int:
        """How often a request was listed or sent on here: it rises with each new row."""

    @property
    def neighbours(self) -> Iterable[str]: ...


@dataclass(slots=True)
class _Request:
    """Which way one request and its results went."""

    is_continuous: bool = False
    is_disturbed: bool = False  # a cover or a link was lost, and it was asked again
    hops: int = 0
    covers: set[str] = field(default_factory=set)
    asked: Counter[_Link] = field(default_factory=Counter)
    visited: set[tuple[str, bool]] = field(default_factory=set)
    crossed: Counter[tuple[str, str, str]] = field(default_factory=Counter)


@dataclass(slots=True)
class _Seen:
    """One core as it was when it was last looked at."""

    core: Core
    attempts: int = 0
    paths: dict[str, int] = field(default_factory=dict)  # the attempt of each request


class DiscoveryCheck:
    """Of all brokers of one overlay, over all their restarts."""

    def __init__(self, fail: Fail, true_ns: Callable[[], int] | None = None) -> None:
        """`true_ns`: the time, if clocks may be wrong; deadlines are compared while none is."""
        self._fail = fail
        self._true_ns = true_ns
        self.clocks_agree = True
        self._changed_ns = 0  # when an advertisement came or went, somewhere
        self._cores: dict[str, _Seen] = {}
        self._requests: dict[str, _Request] = {}
        self.channels = Channels(fail)
        self.covered = 0  # requests that were attached to another one

    # What a core tells

    def began(self, core: Core) -> None:
        """A broker starts; what an earlier process of it knew is gone."""
        former = self._cores.get(core.broker_id)
        if former is not None:
            self._disturb(former.core.one_time.paths)
        self._cores[core.broker_id] = _Seen(core)

    def forgot(self, request_ids: Iterable[str]) -> None:
        """Requests went with a link."""
        self._disturb(request_ids)

    def received(self, core: Core, neighbour: str, message: DiscoveryMessage, now_ns: int) -> None:
        """Before a core takes a message."""
        self.channels.received(neighbour, core.broker_id, message)
        if isinstance(message, Advertise | Unadvertise):
            self._changed_ns = now_ns

    def step(self, core: Core, effects: Iterable[Effect], now_ns: int) -> None:
        """After each call of a core."""
        if self._true_ns is not None and abs(now_ns - self._true_ns()) > CLOCK_WRONG_NS:
            self.clocks_agree = False
        seen = self._cores[core.broker_id]
        if core.attempts != seen.attempts:
            seen.attempts = core.attempts
            self._look_at_paths(seen, now_ns)
        for effect in effects:
            if isinstance(effect, Send):
                self.channels.sent(core.broker_id, effect.neighbour, effect.message)
                self._check_message(core.broker_id, effect.neighbour, effect.message)

    # Messages

    def _request(self, request_id: str) -> _Request:
        return self._requests.setdefault(request_id, _Request())

    def _disturb(self, request_ids: Iterable[str]) -> None:
        for request_id in request_ids:
            self._request(request_id).is_disturbed = True

    def _check_message(self, sender: str, receiver: str, message: DiscoveryMessage) -> None:
        match message:
            case Results(request_id, results):
                for result in results:
                    self._crossed(request_id, sender, receiver, result)
            case Discover():
                self._asked(sender, receiver, message)
            case CoverGone(request_id):
                self._disturb((request_id,))

    def _asked(self, sender: str, receiver: str, message: Discover) -> None:
        request = self._request(message.request_id)
        request.is_continuous = message.model == ModelType.DYNAMIC_CONTINUOUS
        request.asked[sender, receiver] += 1
        request.hops += 1
        what = f"request {message.request_id} goes from {sender} to {receiver}"
        if message.cover is not None and message.max_age_ns == 0:
            self._fail(f"2: {what} with a cover, and shares no answer")
        if request.is_continuous or request.is_disturbed:
            return
        visit = receiver, message.cover is not None
        if visit in request.visited:
            self._fail(f"4: {what} a second time, {'with' if visit[1] else 'without'} a cover")
        request.visited.add(visit)
        if request.hops > 2 * (len(self._cores) - 1):
            self._fail(f"4: {what}, its hop {request.hops} among {len(self._cores)} brokers")

    def _crossed(self, request_id: str, sender: str, receiver: str, result: Result) -> None:
        request, adv_id = self._request(request_id), result.adv_id
        crossed = request.crossed
        crossed[sender, receiver, adv_id] += 1
        what = f"result {adv_id} of request {request_id} goes from {sender} to {receiver}"
        times = crossed[sender, receiver, adv_id]
        if request.is_continuous:
            self._check_continuous(request, sender, receiver, result, what)
        elif (times > 1 or (receiver, sender, adv_id) in crossed) and not self._repeats(request_id):
            if times > 1:
                self._fail(f"3: {what} a second time")
            if (receiver, sender, adv_id) in crossed:
                self._fail(f"3: {what}, from where it came")

    def _check_continuous(
        self, request: _Request, sender: str, receiver: str, result: Result, what: str
    ) -> None:
        """A broker answers each time that it is asked, and passes on what it got, to who asked.

        When a link on the way is another one, the broker before it asks again: then the brokers
        nearer to the client get a result once more, for which they had not to ask.
        """
        asked, crossed, adv_id = request.asked[receiver, sender], request.crossed, result.adv_id
        times = crossed[sender, receiver, adv_id]
        if result.broker == sender:
            if times > asked:
                self._fail(f"3: {what} more often than it was asked for")
        elif not asked:
            self._fail(f"3: {what}, which did not ask for it")
        elif times > sum(crossed[other, sender, adv_id] for other in self._cores):
            self._fail(f"3: {what} more often than it came there")

    def _repeats(self, request_id: str) -> bool:
        """True if it was asked again, or shares what was: results may come to it once more."""
        seen, left = set[str](), [request_id]
        while left:
            each = left.pop()
            if self._request(each).is_disturbed:
                return True
            seen.add(each)
            left += self._request(each).covers - seen
        return False

    # Tables

    def _look_at_paths(self, seen: _Seen, now_ns: int) -> None:
        paths = seen.core.one_time.paths
        new = [path for path in paths.values() if seen.paths.get(path.id) != path.attempt]
        self._disturb(path.id for path in new if path.id in seen.paths)
        seen.paths = {path.id: path.attempt for path in paths.values()}
        older: list[Path] | None = None
        for path in new:
            if path.cover_id:
                self._check_cover(seen.core, path)
            elif path.is_listed:
                if older is None:
                    young = {each.id for each in new}
                    older = [e for e in paths.values() if e.is_listed and e.id not in young]
                self._check_uncovered(seen.core, path, older, now_ns)
                self._check_last_hop(seen.core, path)

    def _check_cover(self, core: Core, path: Path) -> None:
        cover = core.one_time.paths.get(path.cover_id)
        if cover is None or cover is path:
            return  # gone in the same call
        self.covered += 1
        self._request(path.id).covers.add(cover.id)
        what = f"at {core.broker_id} request {path.id} waits for {cover.id}"
        if not covers(cover.region, path.region):
            self._fail(f"10: {what}, which does not cover it")
        if cover.last_hop == path.last_hop and not cover.is_host:
            self._fail(f"5: {what}, from where it came itself")

    def _check_uncovered(self, core: Core, path: Path, older: list[Path], now_ns: int) -> None:
        """It may be shared, and nothing that it could have shared covered it when it was listed."""
        asked = path.request
        if asked.first or asked.direct or asked.shared_until_ns <= asked.issued_ns:
            self._fail(f"6: {core.broker_id} lists request {path.id}, whose answer is for no other")
        max_age_ns = asked.max_age_ns
        for each in older:
            age_ns = now_ns - each.tally.since_ns
            if (
                now_ns < each.shared_until_ns
                and 0 <= age_ns < max_age_ns
                and (each.last_hop != path.last_hop or self._is_free_to_share(path, each))
                and each.id not in path.failed_covers
                and not each.tally.incomplete
                and covers(each.region, path.region)
            ):
                self._fail(f"6: {core.broker_id} lists request {path.id}, covered by {each.id}")

    def _is_free_to_share(self, path: Path, cover: Path) -> bool:
        """Then the last hop of both had no reason either to send this one without that cover."""
        asked = cover.request
        is_fresh = asked.shared_until_ns - asked.issued_ns <= path.request.max_age_ns
        is_disturbed = self._request(cover.id).is_disturbed or self._changed_ns >= asked.issued_ns
        nearer = self._cores.get(path.last_hop)
        there = {} if nearer is None else nearer.core.one_time.paths
        first, second = there.get(cover.id), there.get(path.id)
        if first is None or second is None or first.tally.incomplete:
            return False
        if first.attempt > second.attempt or first.id in second.failed_covers:
            return False  # it was sent on before there was the cover, or without it since
        if first.last_hop == second.last_hop and not first.is_host:
            return self._is_free_to_share(second, first)
        return is_fresh and self.clocks_agree and not is_disturbed

    def _check_last_hop(self, core: Core, path: Path) -> None:
        """Whoever sent it has it for as long."""
        nearer = self._cores.get(path.last_hop)
        is_linked = nearer is not None and core.broker_id in nearer.core.neighbours
        if nearer is None or not is_linked:
            return
        there = nearer.core.one_time.paths.get(path.id)
        if there is not None and there.cover_id and there.attempt == path.request.attempt:
            what = f"{core.broker_id} lists request {path.id}"
            self._fail(f"5: {what}, which {path.last_hop} sent with a cover")
        if self._request(path.id).is_disturbed or not self.clocks_agree:
            return
        what = f"5: {core.broker_id} shares request {path.id}, and {path.last_hop}"
        if there is None:
            self._fail(f"{what} has none")
            return
        is_cut = there.shared_until_ns < there.request.shared_until_ns  # by that broker's options
        is_earlier = there.shared_until_ns < path.shared_until_ns and not is_cut
        if is_earlier or there.kept_until_ns < path.kept_until_ns:
            self._fail(f"{what} stops earlier")

    # The end

    def left_over(self) -> str | None:
        """A message that was sent and has not been received, though no link is down."""
        linked = {
            (core.broker_id, neighbour)
            for core in (seen.core for seen in self._cores.values())
            for neighbour in core.neighbours
        }
        for sender, receiver in sorted(linked):
            if (receiver, sender) in linked and (owed := self.channels.waiting(sender, receiver)):
                return f"7: {owed} messages from {sender} have not come to {receiver}"
        return None
