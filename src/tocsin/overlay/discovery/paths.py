"""Path: what one broker keeps of a dynamic request that passed through it.

It is the return path of the results, the entry of the paper's SrdSubList if the request was covered
by none here, its ResourceCacheMap if the client is here, and of its SubWaitingListMap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from msgspec.structs import replace

from tocsin.overlay.discovery.context import CLIENT
from tocsin.overlay.discovery.conversion import rows_of
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.region import Region, overlaps
from tocsin.wire.link.discovery_messages import BROKERS_MAX, COUNT_MAX, Discover, Done, Result

NEVER_NS = 0  # shared until then: by no clock
LOOKED_AT_MAX = 200  # requests that nothing is done for, in one step


@dataclass(slots=True)
class Tally:
    """What is known of an answer so far. It rests on nothing older than `since_ns`."""

    since_ns: int
    brokers: dict[str, None] = field(default_factory=dict)
    messages: int = 0
    shared: bool = False
    incomplete: str = ""
    direct_results: int = 0

    def add_done(self, done: Done, now_ns: int, *, is_direct: bool = False) -> None:
        """What a branch reported at its end, with the message that reported it.

        `is_direct`: results were to be sent directly; else none are on their way by there.
        """
        self.since_ns = max(0, min(self.since_ns, now_ns - done.age_ns))
        self.add_brokers(done.brokers)
        self.messages = min(self.messages + done.messages + 1, COUNT_MAX)
        self.shared = self.shared or done.shared
        self.incomplete = self.incomplete or done.incomplete
        if is_direct:
            self.direct_results = min(self.direct_results + done.results, COUNT_MAX)

    def add_cover(self, cover: Tally) -> None:
        """What is known of the answer that is shared."""
        self.since_ns = min(self.since_ns, cover.since_ns)
        self.add_brokers(tuple(cover.brokers))
        self.incomplete = self.incomplete or cover.incomplete

    def miss(self, why: str) -> None:
        """The answer is incomplete; the first reason is the one that is shown."""
        self.incomplete = self.incomplete or why

    def add_brokers(self, brokers: tuple[str, ...]) -> None:
        for broker in brokers:
            if len(self.brokers) < BROKERS_MAX:
                self.brokers[broker] = None


@dataclass(slots=True)
class CachedResult:
    """A result at the requester's broker: from where it came, and when."""

    result: Result
    came_from: str
    at_ns: int
    rows: tuple[Region, ...] = ()  # as requests are compared with it, made when first needed

    def age_ns(self, now_ns: int) -> int:
        """How long it was kept in caches, in this one too."""
        return min(self.result.age_ns + max(0, now_ns - self.at_ns), COUNT_MAX)

    def is_for(self, request: Region) -> bool:
        self.rows = self.rows or rows_of(self.result)
        return any(overlaps(request, row) for row in self.rows)


@dataclass(slots=True)
class Path:
    """One dynamic request at one broker."""

    request: Discover
    region: Region
    last_hop: str
    arrived_ns: int
    shared_until_ns: int
    kept_until_ns: int
    tally: Tally
    forwarded: set[str] = field(default_factory=set)  # to these neighbours, without a cover
    branches: set[str] = field(default_factory=set)  # of those, where no end marker came from
    has_results: bool = False  # some were produced or passed on here
    is_listed: bool = False  # in the SrdSubList
    waiters: dict[str, None] = field(default_factory=dict)  # requests that it covers here
    cover_id: str = ""  # the request that covers it here
    attached_by: str = ""  # the broker that found that cover
    awaited: set[str] = field(default_factory=set)  # branches of the cover, not ended yet
    upstream: str = ""  # the way to the cover's host, while no end marker came from there
    failed_covers: set[str] = field(default_factory=set)
    attempt: int = 0  # with which it was sent on; that of the request is the last hop's
    is_done: bool = False
    size: int = 0  # of the request, in bytes
    # Of the broker where the client is:
    results: dict[str, CachedResult] = field(default_factory=dict)
    result_bytes: int = 0
    direct_results: int = 0  # that have come; the tally has how many were announced
    is_client_gone: bool = False
    is_too_old: bool = False  # what was shared is older than the client asked for

    @property
    def id(self) -> str:
        return self.request.request_id

    @property
    def is_host(self) -> bool:
        return self.last_hop == CLIENT

    @property
    def waits(self) -> bool:
        return bool(self.branches or self.awaited or self.upstream)

    @property
    def missing(self) -> str:
        """From where there is no end marker, or nothing although it was announced."""
        neighbours = sorted(self.awaits_from - {""})
        return ", ".join(neighbours) or "brokers that answer directly"

    @property
    def sent_to(self) -> set[str]:
        """Where no end marker came from."""
        return self.branches | {self.upstream}

    @property
    def awaits_from(self) -> set[str]:
        return self.awaited | self.sent_to

    def expects_from(self, neighbour: str) -> bool:
        return neighbour in self.branches or neighbour == self.upstream

    def is_attached_at(self, broker: str) -> bool:
        """True if it came there without a cover, and was found one."""
        return self.attached_by == broker and not self.is_host

    def count_direct(self, results: Sequence[Result]) -> None:
        """Each once: what was sent again, as nothing had said that it came, may have come twice."""
        self.direct_results += len({each.adv_id for each in results} - self.results.keys())

    def expect_nothing(self) -> None:
        """Whatever comes from where it was sent, is of an earlier attempt."""
        self.attached_by = self.upstream = ""
        self.awaited, self.branches = set(), set()

    def ask_without_sharing(self, now_ns: int) -> None:
        """From now on, and as if nothing had been shared."""
        self.request = replace(self.request, max_age_ns=0)
        self.tally.since_ns = now_ns
        self.tally.shared = self.is_too_old = False


def new_path(
    message: Discover, region: Region, last_hop: str, options: DiscoveryOptions, now_ns: int
) -> Path:
    """A request that has just come from a client or a neighbour."""
    longest_ns = max(options.cache_expiry_ns, options.timeout_ns) + options.guard_ns
    # A7: all brokers forget at the same time. One whose clock is far off, by more than the guard
    # is for, uses its own limits from when the request came.
    kept_until_ns = message.expires_ns
    latest_ns = now_ns + longest_ns + options.guard_ns
    if last_hop != CLIENT and not now_ns < kept_until_ns <= latest_ns:
        kept_until_ns = now_ns + longest_ns
    shared_until_ns = min(message.shared_until_ns, now_ns + options.cache_expiry_ns)
    if message.shared_until_ns <= message.issued_ns:
        # Its host shares it with nobody. By a clock that is behind, that time is still to come.
        shared_until_ns = NEVER_NS
    return Path(
        replace(message, cover=None),
        region,
        last_hop,
        now_ns,
        shared_until_ns,
        kept_until_ns,
        Tally(now_ns),
    )


def cached_results(cover: Path, path: Path, not_from: str | None, now_ns: int) -> list[Result]:
    """What the host of a cover has for a request, each with how long it was kept."""
    found = (
        replace(kept.result, age_ns=kept.age_ns(now_ns))
        for kept in cover.results.values()
        if kept.came_from != not_from and kept.is_for(path.region)
    )
    return list(islice(found, path.request.first or None))


def in_steps(
    paths: Mapping[str, Path], is_concerned: Callable[[Path], bool]
) -> Iterator[Path | None]:
    """Those that are concerned, one by one, and None after so many others that it is time for
    something else."""
    for number, path in enumerate(list(paths.values())):
        if is_concerned(path):
            yield path
        elif number % LOOKED_AT_MAX == 0:
            yield None
