"""Messages that requests are made of, whether they ask once or continuously."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tocsin.errors import DiscoveryFull
from tocsin.overlay.discovery.context import Context
from tocsin.overlay.discovery.conversion import from_row, to_row
from tocsin.overlay.discovery.effects import Ignored
from tocsin.overlay.discovery.memory import size_of
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.discovery.paths import Tally
from tocsin.overlay.discovery.requests import Request
from tocsin.overlay.region import Region
from tocsin.wire.link.discovery_messages import (
    COUNT_MAX,
    REASON_CHARS_MAX,
    Discover,
    Done,
    Result,
    Results,
)


def discover_message(request: Request, context: Context, now_ns: int) -> Discover:
    """The message of a client's request."""
    options = context.options
    shares = options.similarity and not options.direct and not request.model.is_continuous
    expiry_ns = options.cache_expiry_ns if shares else 0
    # What stops early is no answer for others (A17).
    shared_ns = 0 if request.first else expiry_ns
    max_age_ns = expiry_ns if request.max_age_ns is None else request.max_age_ns
    kept_ns = max(shared_ns, timeout_ns(request, options)) + options.guard_ns
    return Discover(
        request_id=request.request_id,
        host=context.broker_id,
        region=to_row(request.region),
        model=request.model,
        issued_ns=now_ns,
        shared_until_ns=now_ns + shared_ns,
        expires_ns=now_ns + kept_ns,
        max_age_ns=max_age_ns if shares else 0,
        first=request.first,
        snapshot=request.snapshot,
        direct=options.direct and not request.model.is_continuous,
        reply_to=options.reply_to if options.direct else "",
    )


def timeout_ns(request: Request, options: DiscoveryOptions) -> int:
    return options.timeout_ns if request.timeout_ns is None else request.timeout_ns


def read_region(
    message: Discover, neighbour: str, context: Context, problem: str = ""
) -> Region | None:
    """The region of a neighbour's request; if it cannot be taken, the neighbour is told so."""
    region = from_row(message.region)
    if not problem and message.hops > context.options.hops_max:
        problem = "request came over too many links"
    if not problem and region is not None:
        return region
    problem = problem or "request with an invalid region"
    context.drop(problem)
    why = f"{problem}, at {context.broker_id}"[:REASON_CHARS_MAX]
    done = Done(request_id=message.request_id, attempt=message.attempt, incomplete=why)
    context.send(neighbour, done)
    return None


def problem_of_request(context: Context, neighbour: str, message: Discover, kept: int) -> str:
    """Why there is no room for a neighbour's request, if there is none."""
    if kept >= context.options.requests_max:
        return "too many requests"
    problem = context.memory.problem_of_request(neighbour, size_of(message), context.options)
    if problem:
        error = DiscoveryFull(
            f"{problem}: {neighbour} has sent as many as it may, or all together have",
            remedy="Raise request_bytes_max and request_bytes_per_neighbour_max in [overlay].",
        )
        context.effects.append(Ignored(neighbour, error))
    return problem


def packages(
    request_id: str, results: Sequence[Result], options: DiscoveryOptions, *, packed: bool = True
) -> Iterator[Results]:
    """The results in as few messages as they fit in; one by one if they are not packed.

    A message that is longer than a frame of the link may be, would end the link.
    """
    number_max = options.results_per_message_max if packed else 1
    bytes_max = options.result_bytes_per_message_max
    package: list[Result] = []
    size = 0
    for result in results:
        more = size_of(result) if len(results) > 1 else 0
        if package and (len(package) >= number_max or size + more > bytes_max):
            yield Results(request_id, tuple(package))
            package, size = [], 0
        package.append(result)
        size += more
    if package:
        yield Results(request_id, tuple(package))


def done_message(request_id: str, attempt: int, tally: Tally, now_ns: int) -> Done:
    """The end marker of a request at this broker. Neighbours may have counted anything."""
    return Done(
        request_id=request_id,
        attempt=attempt,
        brokers=tuple(tally.brokers),
        messages=min(tally.messages, COUNT_MAX),
        age_ns=max(0, now_ns - tally.since_ns),
        shared=tally.shared,
        incomplete=tally.incomplete[:REASON_CHARS_MAX],
        results=tally.direct_results,
    )
