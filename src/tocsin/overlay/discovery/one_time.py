"""Similarity forwarding: Algorithms 1 and 2 of paper 001, for dynamic requests that ask once.

A request goes along matching advertisements until it meets one that covers it. There it waits for
results of that cover which are still to come, and is sent to the cover's host for those that have
come. The paper leaves several cases open, or gets them wrong; ADR 0025 lists them as A1 to A24, and
a comment here names the one that a line is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from tocsin.overlay.discovery.advertisements import Advertisements
from tocsin.overlay.discovery.answers import Answers
from tocsin.overlay.discovery.context import CLIENT, Context
from tocsin.overlay.discovery.conversion import matches
from tocsin.overlay.discovery.covers import CoverList
from tocsin.overlay.discovery.messages import (
    discover_message,
    done_message,
    packages,
    problem_of_request,
    read_region,
    timeout_ns,
)
from tocsin.overlay.discovery.paths import Path, cached_results, in_steps, new_path
from tocsin.overlay.discovery.requests import Request
from tocsin.overlay.discovery.resources import LocalResources
from tocsin.overlay.region import Region
from tocsin.wire.link.discovery_messages import (
    Cancel,
    Cover,
    CoverGone,
    Discover,
    Done,
    Result,
    Results,
)


class OneTimeRequests:
    """The dynamic requests that passed this broker, until they are forgotten."""

    def __init__(
        self,
        context: Context,
        advertisements: Advertisements,
        resources: LocalResources,
        covers: CoverList,
    ) -> None:
        self._context = context
        self._advertisements = advertisements
        self._resources = resources
        self._covers = covers
        self._answers = Answers(context, advertisements)
        self.paths: dict[str, Path] = {}
        context.memory.forget_an_answer = self._forget_an_answer

    # What clients ask.

    def discover(self, request: Request, now_ns: int) -> None:
        message = discover_message(request, self._context, now_ns)
        path = self._add(message, request.region, CLIENT, now_ns)
        due_ns = now_ns + timeout_ns(request, self._context.options)
        self._context.timers.set(due_ns, "timeout", path.id)
        self._start(path, now_ns)

    def cancel(self, request_id: str, now_ns: int) -> bool:
        """Ends a client's request; False if there is none. Its answer may still be shared (A14)."""
        path = self.paths.get(request_id)
        if path is None or not path.is_host or path.is_client_gone:
            return False
        path.is_client_gone = True
        self._context.timers.cancel("timeout", path.id)
        if not path.is_done and path.shared_until_ns <= now_ns:
            self._stop(path, now_ns)
        return True

    def time_out(self, request_id: str, now_ns: int) -> None:
        """The client has waited long enough; what comes later is only shared."""
        path = self.paths.get(request_id)
        if path is None or path.is_done:
            return
        path.tally.miss(f"no end of results from {path.missing}")
        self._answers.finish(path, now_ns)

    # What neighbours send.

    def receive_discover(self, neighbour: str, message: Discover, now_ns: int) -> None:
        known = self.paths.get(message.request_id)
        if known and known.last_hop == neighbour and message.attempt <= known.request.attempt:
            self._context.drop("request known")  # A15
            return
        problem = "request came by another way" if known and known.last_hop != neighbour else ""
        problem = problem or problem_of_request(self._context, neighbour, message, len(self.paths))
        region = read_region(message, neighbour, self._context, problem)
        if region is None:
            return
        if known is not None:
            self._forget(known, now_ns)
        path = self._add(message, region, neighbour, now_ns)
        if message.cover is None:
            self._start(path, now_ns)
        else:  # A1
            self._join(path, message.cover, now_ns)

    def receive_results(self, neighbour: str, message: Results, now_ns: int) -> None:
        path = self.paths.get(message.request_id)
        if path is None:  # A11
            self._context.drop("results for an unknown request")
        elif not path.expects_from(neighbour):
            self._context.drop("results from where none are expected")
        else:
            self._pass_on(path, message.results, neighbour, now_ns)

    def receive_direct(self, message: Results, now_ns: int) -> None:
        path = self.paths.get(message.request_id)
        if path is None or not path.is_host or not path.request.direct:
            self._context.drop("results for an unknown request")
            return
        path.count_direct(message.results)
        self._deliver(path, message.results, "direct", now_ns)
        self._check_done(path, now_ns)

    def receive_done(self, neighbour: str, message: Done, now_ns: int) -> None:
        path = self.paths.get(message.request_id)
        if path is None or message.attempt != path.attempt or not path.expects_from(neighbour):
            self._context.drop("end marker that nothing waits for")
            return
        path.tally.add_done(message, now_ns, is_direct=path.request.direct)
        if neighbour == path.upstream:
            path.upstream = ""
        self._end_branch(path, neighbour, now_ns)

    def receive_cover_gone(self, neighbour: str, message: CoverGone, now_ns: int) -> None:
        path = self.paths.get(message.request_id)
        if path is None or path.upstream != neighbour or message.attempt != path.attempt:
            self._context.drop("cover of an unknown request is gone")
            return
        path.tally.messages += 1
        cover = self.paths.get(path.cover_id)
        if cover is not None:
            self._covers.remove(cover)
        self._cover_lost(path, now_ns)

    def receive_cancel(self, neighbour: str, message: Cancel, now_ns: int) -> None:
        path = self.paths.get(message.request_id)
        if path is None or path.last_hop != neighbour or path.is_listed:
            self._context.drop("cancellation of an unknown request")
        else:
            self._stop(path, now_ns)

    # Algorithm 1: subscription forwarding.

    def _add(self, message: Discover, region: Region, last_hop: str, now_ns: int) -> Path:
        path = new_path(message, region, last_hop, self._context.options, now_ns)
        path.attempt = self._context.next_attempt()
        self.paths[path.id] = path
        self._answers.expect(path)
        return path

    def _start(self, path: Path, now_ns: int) -> None:
        """A request that has no cover yet."""
        cover = self._covers.find(path, now_ns)
        if cover is None:
            self._explore(path, now_ns)
        else:
            self._context.counters.covered += 1
            path.attached_by = self._context.broker_id
            self._attach(path, cover, has_payload=False, now_ns=now_ns)
        self._check_done(path, now_ns)

    def _explore(self, path: Path, now_ns: int) -> None:
        """Nothing covers the request: it goes wherever resources may be."""
        self._covers.add(path, now_ns)
        next_hops = self._advertisements.next_hops(path.region)
        if CLIENT in next_hops:
            path.tally.add_brokers((self._context.broker_id,))
            self._deliver_local(path, now_ns)
        if self.paths.get(path.id) is not path:
            return  # it wanted only so many as there are here
        for neighbour in sorted(next_hops - {CLIENT, path.last_hop}):
            path.forwarded.add(neighbour)
            path.branches.add(neighbour)
            self._forward(path, neighbour, None)

    def _deliver_local(self, path: Path, now_ns: int) -> None:
        """What the latest values of this broker's own resources answer (A18)."""
        options = self._context.options
        candidates = self._advertisements.local_resources(path.region)
        found = self._resources.matching(path.region, candidates, now_ns, path.request.first)
        if path.is_host or not path.request.direct or not self._answers.send_direct(path, found):
            self._deliver(path, found, CLIENT, now_ns, packed=options.package)

    def _join(self, path: Path, payload: Cover, now_ns: int) -> None:
        """A request that comes with a cover, on its way to the cover's host."""
        cover = self.paths.get(payload.request_id)
        # One that an advertisement took off the list here (A12) was found where that is not known.
        if cover is None or not cover.is_listed or cover.last_hop == path.last_hop:
            gone = CoverGone(path.id, payload, path.request.attempt)  # A8
            self._context.send(path.last_hop, gone)
            self._forget(path, now_ns)
            return
        path.attached_by = payload.attached_by
        self._attach(path, cover, has_payload=True, now_ns=now_ns)
        self._check_done(path, now_ns)

    def _attach(self, path: Path, cover: Path, *, has_payload: bool, now_ns: int) -> None:
        options = self._context.options
        path.cover_id = cover.id
        path.tally.shared = True
        if cover.forwarded - {path.last_hop} or not has_payload or cover.is_host:
            cover.waiters[path.id] = None
            path.awaited = cover.branches - {path.last_hop}
        if cover.is_host:
            # A request that found no cover where it comes from is asked there by itself.
            not_from = None if has_payload or path.is_host else path.last_hop
            cached = cached_results(cover, path, not_from, now_ns)
            self._deliver(path, cached, CLIENT, now_ns, packed=options.package_cached)
        elif cover.has_results or self._may_come_from(cover.last_hop, path):  # A5
            path.upstream = cover.last_hop
            self._forward(path, cover.last_hop, Cover(cover.id, path.attached_by))

    def _may_come_from(self, neighbour: str, path: Path) -> bool:
        return neighbour in self._advertisements.next_hops(path.region)

    def _forward(self, path: Path, neighbour: str, cover: Cover | None) -> None:
        path.tally.messages += 1
        self._context.send(
            neighbour,
            replace(path.request, cover=cover, attempt=path.attempt, hops=path.request.hops + 1),
        )

    # Algorithm 2: publication forwarding.

    def _pass_on(self, path: Path, results: Sequence[Result], came_from: str, now_ns: int) -> None:
        """Results go back to where the request came from, and to those that wait for them here."""
        if came_from == path.upstream and path.is_attached_at(self._context.broker_id):  # A2
            # It came without a cover, so what is where it came from was asked by itself.
            results = self._advertisements.not_from(results, path.last_hop)
        self._deliver(path, results, came_from, now_ns)
        for waiter_id in list(path.waiters):
            waiter = self.paths.get(waiter_id)
            if waiter is not None and self._awaits(waiter, path, came_from):
                mine = self._for_waiter(waiter, results)  # A4
                self._deliver(waiter, mine, came_from, now_ns)

    def _awaits(self, waiter: Path, cover: Path, came_from: str) -> bool:
        """A2: never back over the link that it came from, which is never among the awaited."""
        return waiter.cover_id == cover.id and came_from in waiter.awaited

    def _for_waiter(self, waiter: Path, results: Sequence[Result]) -> list[Result]:
        return [result for result in results if matches(waiter.region, result)]

    def _deliver(
        self,
        path: Path,
        results: Sequence[Result],
        came_from: str,
        now_ns: int,
        *,
        packed: bool = True,
    ) -> None:
        """Hands results to the last hop of one request."""
        if not results:
            return
        path.has_results = True
        if not path.is_host:
            for package in packages(path.id, results, self._context.options, packed=packed):
                path.tally.messages += 1
                self._context.send(path.last_hop, package)
        elif self._answers.add(path, results, came_from, now_ns):
            self._stop(path, now_ns)

    # The end of a request (A9).

    def _end_branch(self, path: Path, neighbour: str, now_ns: int) -> None:
        """Nothing more comes from a neighbour, for the request and for those that wait for it."""
        path.branches.discard(neighbour)
        self._check_done(path, now_ns)
        for waiter_id in list(path.waiters):
            waiter = self.paths.get(waiter_id)
            if waiter is not None and waiter.cover_id == path.id:
                waiter.awaited.discard(neighbour)
                self._check_done(waiter, now_ns)

    def _check_done(self, path: Path, now_ns: int) -> None:
        if path.is_done or path.waits or self.paths.get(path.id) is not path:
            return
        if path.is_host and path.direct_results < path.tally.direct_results:
            return  # on their way, past the brokers between
        cover = self.paths.get(path.cover_id)
        if cover is not None:
            path.tally.add_cover(cover.tally)
        if path.is_host and self._answers.is_too_old(path) and not path.is_client_gone:
            self._ask_again(path, now_ns)
            return
        path.is_done = True
        self._report_done(path, now_ns)
        if path.shared_until_ns <= now_ns and not path.waiters and not path.cover_id:
            self._forget(path, now_ns)

    def _report_done(self, path: Path, now_ns: int) -> None:
        if path.is_host:
            self._answers.finish_whole(path, now_ns)
        else:
            done = done_message(path.id, path.request.attempt, path.tally, now_ns)
            self._context.send(path.last_hop, done)

    def _ask_again(self, path: Path, now_ns: int) -> None:
        """What was shared had itself been shared, and is too old by now: asks without sharing."""
        path.ask_without_sharing(now_ns)
        self._retry(path, now_ns)

    def _stop(self, path: Path, now_ns: int) -> None:
        """Ends a request before its end, here and wherever it was sent."""
        for neighbour in sorted(self._context.neighbours.keys() & path.sent_to):
            self._context.send(neighbour, Cancel(path.id))
        self._forget(path, now_ns)

    def _retry(self, path: Path, now_ns: int) -> None:
        """Goes on without the cover that is gone (A8); results that came already are dropped."""
        self._detach(path)
        path.attempt = self._context.next_attempt()
        path.expect_nothing()
        self._start(path, now_ns)

    def _cover_lost(self, path: Path, now_ns: int) -> None:
        if path.attached_by == self._context.broker_id:
            self._retry(path, now_ns)
            return
        cover = Cover(path.cover_id, path.attached_by)
        self._context.send(path.last_hop, CoverGone(path.id, cover, path.request.attempt))
        self._forget(path, now_ns)

    def _detach(self, path: Path) -> None:
        cover = self.paths.get(path.cover_id)
        if cover is not None:
            cover.waiters.pop(path.id, None)
        if path.cover_id:
            path.failed_covers.add(path.cover_id)
        path.cover_id = ""

    def _forget(self, path: Path, now_ns: int) -> None:
        """Takes a request out of every table; those that wait for it go on without it."""
        if self.paths.get(path.id) is not path:
            return
        del self.paths[path.id]
        self._answers.drop(path)
        self._covers.remove(path)
        self._detach(path)
        for waiter_id in list(path.waiters):
            waiter = self.paths.get(waiter_id)
            if waiter is None or waiter.cover_id != path.id:
                continue
            if waiter.is_done:
                self._forget(waiter, now_ns)  # A19
            elif waiter.awaited:
                self._cover_lost(waiter, now_ns)

    def _forget_an_answer(self) -> bool:
        """Makes room for results: an answer that is only shared any more, is not."""
        path = self._answers.oldest_whole()
        if path is not None:
            self._context.drop("shared answer, for want of room")
            self._forget(path, path.kept_until_ns)
        return path is not None

    def expire(self, request_id: str, now_ns: int) -> None:
        path = self.paths.get(request_id)
        if path is None or now_ns < path.kept_until_ns:
            return
        if not path.is_done:
            path.is_done = True
            path.tally.miss(f"no end of results at {self._context.broker_id}")
            if path.is_host or path.last_hop in self._context.neighbours:
                self._report_done(path, now_ns)
        self._forget(path, now_ns)

    def link_down(self, neighbour: str, now_ns: int) -> Iterator[None]:
        """Forgets requests that came over the link, and waits no longer for what does not come; a
        request in each step."""
        for path in in_steps(self.paths, lambda each: each.last_hop == neighbour):
            if path is not None:
                self._forget(path, now_ns)
            yield
        for path in in_steps(self.paths, lambda each: neighbour in each.awaits_from):
            if path is not None and self.paths.get(path.id) is path:
                self._expect_nothing_from(neighbour, path, now_ns)
            yield

    def _expect_nothing_from(self, neighbour: str, path: Path, now_ns: int) -> None:
        path.tally.miss(f"the link from {self._context.broker_id} to {neighbour} is down")
        if path.upstream == neighbour:
            self._cover_lost(path, now_ns)
            return
        path.awaited.discard(neighbour)
        self._end_branch(path, neighbour, now_ns)
