"""Answers: what clients get for dynamic requests, each result once, and what waiting takes."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.overlay.discovery.advertisements import Advertisements
from tocsin.overlay.discovery.context import Context
from tocsin.overlay.discovery.conversion import resource_of
from tocsin.overlay.discovery.effects import Answered, Finished, SendDirect, Summary
from tocsin.overlay.discovery.memory import RESULTS, size_of
from tocsin.overlay.discovery.messages import packages
from tocsin.overlay.discovery.paths import CachedResult, Path
from tocsin.wire.link.discovery_messages import COUNT_MAX, Result


class Answers:
    """Collects results at the broker where the client is."""

    def __init__(self, context: Context, advertisements: Advertisements) -> None:
        self._context = context
        self._advertisements = advertisements
        self._whole: dict[str, Path] = {}  # of clients here, the oldest first

    def expect(self, path: Path) -> None:
        """A request has come: it takes memory and time."""
        path.size = size_of(path.request)
        self._context.memory.add_request(path.last_hop, path.size)
        self._context.timers.set(path.kept_until_ns, "path", path.id)

    def drop(self, path: Path) -> None:
        """The request is forgotten, and its answer with it."""
        self._whole.pop(path.id, None)
        self._context.memory.add_request(path.last_hop, -path.size)
        self._context.memory.add(RESULTS, -path.result_bytes)
        for what in ("path", "timeout"):
            self._context.timers.cancel(what, path.id)

    def oldest_whole(self) -> Path | None:
        """The answer that has only been there to be shared for the longest time."""
        return next(iter(self._whole.values()), None)

    def add(self, path: Path, results: Sequence[Result], came_from: str, now_ns: int) -> bool:
        """Takes results; True if the request has as many now as it wants."""
        first = path.request.first
        new: list[Result] = []
        for result in results:
            if result.adv_id in path.results:  # A6
                self._context.drop("result known")
            elif self._is_too_old_result(path, result, now_ns):
                path.is_too_old = True
                self._context.drop("result too old")
            elif len(path.results) >= self._context.options.results_max:
                path.tally.incomplete = f"more than {len(path.results)} results"
                self._context.drop("too many results")
            elif not self._context.memory.has_room_for_result(
                size := size_of(result), self._context.options
            ):
                path.tally.incomplete = f"no room for more than {len(path.results)} results"
                self._context.drop("too many bytes of results")
            else:
                path.results[result.adv_id] = CachedResult(result, came_from, now_ns)
                path.result_bytes += size
                self._context.memory.add(RESULTS, size)
                new.append(result)
                if len(path.results) == first:
                    break
        self._answer(path, new)
        is_enough = 0 < first <= len(path.results) and not path.is_done
        if is_enough:
            path.is_done = True
            self.finish(path, now_ns, stopped_early=True)
        return is_enough

    def _answer(self, path: Path, results: list[Result]) -> None:
        if not results or path.is_client_gone:
            return
        hops_to = self._advertisements.hops_to
        found = tuple(
            resource_of(each, hops_to((each.broker, each.resource_id))) for each in results
        )
        self._context.effects.append(Answered(path.id, found))

    def _is_too_old_result(self, path: Path, result: Result, now_ns: int) -> bool:
        return self._is_before(path, now_ns - result.age_ns)

    def _is_before(self, path: Path, moment_ns: int) -> bool:
        """A13: what is shared is at most so old as the client allows, and the guard."""
        request = path.request
        if request.max_age_ns == 0:
            return False  # nothing was shared
        oldest_ns = request.issued_ns - request.max_age_ns - self._context.options.guard_ns
        return moment_ns < oldest_ns

    def is_too_old(self, path: Path) -> bool:
        """True if the answer, or what is missing in it, rests on what is too old."""
        return path.is_too_old or self._is_before(path, path.tally.since_ns)

    def finish_whole(self, path: Path, now_ns: int) -> None:
        """Nothing more comes; from now on the answer is there to be shared."""
        if path.results:
            self._whole[path.id] = path
        self.finish(path, now_ns)

    def finish(self, path: Path, now_ns: int, *, stopped_early: bool = False) -> None:
        """Says how the answer came about; once, and only to a client that is still there."""
        if path.is_client_gone:
            return
        path.is_client_gone = True
        self._context.timers.cancel("timeout", path.id)
        tally = path.tally
        if stopped_early or tally.incomplete:  # those whose results came, and no end marker
            tally.add_brokers(tuple(each.result.broker for each in path.results.values()))
        was_asked = bool(path.forwarded or path.tally.shared or tally.brokers)
        nothing = "" if was_asked else "no resource advertises these attributes in these ranges"
        summary = Summary(
            brokers=tuple(sorted(tally.brokers)),
            messages=min(tally.messages, COUNT_MAX),
            oldest_ns=min(tally.since_ns, now_ns),
            shared=tally.shared,
            incomplete=tally.incomplete,
            why_empty="" if path.results else nothing,
            stopped_early=stopped_early,
            found=len(path.results),
        )
        self._context.effects.append(Finished(path.id, summary))

    def send_direct(self, path: Path, found: Sequence[Result]) -> bool:
        """Sends results past the brokers between. False where that is not allowed."""
        request, options = path.request, self._context.options
        if not self._context.may_connect_to(request.reply_to):
            self._context.drop("request for results at an address that is not allowed")
            return False
        path.tally.direct_results += len(found)
        for package in packages(path.id, found, options, packed=options.package):
            self._context.count(package)
            self._context.effects.append(SendDirect(request.host, package, request.reply_to))
            path.tally.messages += 1
        return True
