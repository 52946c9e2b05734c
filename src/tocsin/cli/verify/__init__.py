"""What `tocsin verify` does: read events, check each, and say what was found.

What a broker says of a signature is not asked for: it is checked here.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from tocsin.access.sign_in.certificates import Authorities
from tocsin.cli.progress import Progress
from tocsin.cli.render import plural, say, show_json, table
from tocsin.cli.rest import PAGE_MAX
from tocsin.client.requests import query
from tocsin.client.transport.address import broker_address
from tocsin.client.transport.connection import Connection
from tocsin.errors import BadEvent, BadSetting, SomeFailed, TocsinError
from tocsin.event.event import Event
from tocsin.topics.signed_event import Signer, signer_of
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.cloudevents.read import read_events

LINE_BYTES_MAX: Final = 16 << 20
SHOWN_MAX: Final = 500
_LIMITS: Final = Limits(event_bytes_max=LINE_BYTES_MAX)


class _Page(msgspec.Struct):
    events: list[msgspec.Raw]
    sequences: list[int]
    next: int
    more: bool


class _Found(msgspec.Struct):
    """An event that was checked. `problem` is empty if it is as it should be."""

    number: int  # in the log, or of the line
    event: Event
    signer: Signer | None
    problem: str

    @property
    def state(self) -> str:
        if self.problem:
            return self.problem
        return "signed" if self.signer is not None else "not signed"


def verify(arguments: Namespace) -> int:
    """The exit code; SomeFailed if a signature does not hold, or is not whose it should be."""
    trusted = _authorities(arguments.ca_file)
    found = (
        _check(number, event, trusted, arguments.signer) for number, event in _events(arguments)
    )
    total = signed = failed = 0
    shown: list[_Found] = []
    with Progress("events") as progress:
        for each in found:
            total += 1
            signed += each.signer is not None
            failed += bool(each.problem)
            progress.advance(1)
            if each.problem or arguments.all:
                if arguments.json:
                    show_json(_json(each))
                elif len(shown) <= SHOWN_MAX:
                    shown.append(each)
    if arguments.json:
        show_json({"events": total, "signed": signed, "failed": failed})
    else:
        if shown:
            _print(shown)
        say(f"{plural(total, 'event')}, {signed:,} signed, {failed:,} failed")
    if failed:
        raise SomeFailed(
            f"{plural(failed, 'event')} of {total:,} failed the check",
            remedy="Do not trust what these say; ask their publisher for them.",
        )
    return 0


def _check(number: int, event: Event, trusted: Authorities | None, wanted: str | None) -> _Found:
    try:
        signer = signer_of(event, trusted)
    except TocsinError as error:
        return _Found(number, event, None, error.problem)
    if wanted is None or (signer is not None and _is(signer, wanted)):
        return _Found(number, event, signer, "")
    if signer is None:
        return _Found(number, event, None, "it is not signed")
    who = signer.name if signer.is_certified else f"{signer.name}, which no authority certifies"
    return _Found(number, event, signer, f"it is signed by {who} ({signer.eid})")


def _is(signer: Signer, wanted: str) -> bool:
    return signer.eid == wanted or (signer.is_certified and signer.name == wanted)


def _authorities(ca_file: str | None) -> Authorities | None:
    if ca_file is None:
        return None
    try:
        return Authorities.read(Path(ca_file).read_bytes(), ca_file)
    except OSError as error:
        raise BadSetting(
            f"--ca-file {ca_file} cannot be read: {error.strerror}",
            remedy="Name a PEM file with the certificates of the authorities.",
        ) from None


# Where the events come from


def _events(arguments: Namespace) -> Iterator[tuple[int, Event]]:
    if arguments.file is None:
        return _of_log(arguments)
    if arguments.filter is not None or arguments.after:
        raise BadSetting(
            "--filter and --after are about a broker's log",
            remedy="Leave them out, or leave out the file.",
        )
    return _of_file(arguments.file, arguments.limit)


def _of_log(arguments: Namespace) -> Iterator[tuple[int, Event]]:
    after, left = arguments.after, arguments.limit
    with Connection(broker_address(arguments.broker)) as connection:
        while left is None or left > 0:
            limit = PAGE_MAX if left is None else min(left, PAGE_MAX)
            path = "/events" + query(after=after, limit=limit, filter=arguments.filter)
            response = connection.request("GET", path)
            response.value()  # raises the broker's refusal
            page = msgspec.json.decode(response.body, type=_Page)
            for number, raw in zip(page.sequences, page.events, strict=True):
                yield number, _read(bytes(raw), f"event {number}")
            if left is not None:
                left -= len(page.events)
            if not page.more or page.next <= after:
                return
            after = page.next


def _of_file(name: str, limit: int | None) -> Iterator[tuple[int, Event]]:
    number = 0
    with _input(name) as file:
        while (limit is None or number < limit) and (line := file.readline(LINE_BYTES_MAX + 1)):
            if line.strip():
                number += 1
                yield number, _read(line.strip(), f"line {number}")


@contextmanager
def _input(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(name).open("rb") as file:
            yield file
    except OSError as error:
        raise BadSetting(
            f"{name} cannot be read: {error.strerror}", remedy="Name a file of CloudEvents."
        ) from None


def _read(text: bytes, what: str) -> Event:
    try:
        (event,) = read_events("application/cloudevents+json", {}, text, _LIMITS)
    except TocsinError as error:
        raise BadEvent(f"{what} of the input: {error.problem}", remedy=error.remedy) from None
    return event


# What is said


def _json(found: _Found) -> dict[str, Any]:
    signer = found.signer
    return {
        "number": found.number,
        "source": found.event.source,
        "id": found.event.id,
        "topic": found.event.topic,
        "signer": None if signer is None else msgspec.to_builtins(signer),
        "problem": found.problem or None,
    }


def _print(found: list[_Found]) -> None:
    rows = [
        (
            f"{each.number:,}",
            each.event.topic,
            each.event.id,
            "" if each.signer is None else each.signer.name,
            "" if each.signer is None else each.signer.eid[:12],
            each.state,
        )
        for each in found
    ]
    table(("number", "topic", "id", "signer", "key", "state"), rows, limit=SHOWN_MAX)
