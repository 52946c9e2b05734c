"""Wherever a filter comes in, the right to what passes it is asked for: no operation forgets to,
and none has it decided, and recorded, twice.

The operations are taken from the same tables as those of the walk that may do nothing. Here all is
allowed and written down: each filter that reaches the broker, and what was asked before that.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch
from urllib.parse import quote

import pytest
import refusing as refusing_module
import uvloop
from frames_walk import Tcp, requests
from http_walk import BODIES, SOCKET, fetch
from refusing import Refusing, refusing
from soap_walk import answer_to
from sockets_walk import COMMANDS, answer_in_socket

from tocsin.access.decision import ANY_BOX, About, Action, DecidedBy, allow_all, deny_all
from tocsin.access.resources import filter_resource
from tocsin.access.session import BROKER, Session
from tocsin.broker.broker import Broker
from tocsin.event.filter import Filter
from tocsin.wire.api.openapi.document import description
from tocsin.wire.gma import messages as gma
from tocsin.wire.link import messages as link
from tocsin.wire.soap import names

TEXT = "text type = 'b'"
FILTERS = [{"exact": {"type": "b"}}]
OF_A_BOX = "filter/topic box/"
MEMBERS = {"filter", "filters", "concepts"}  # by which requests name what they want
# Whoever adds another request with a filter that is asked for something else has to say so here.
OF_OTHER_THINGS = {
    "GET /events": "of what is read from the log, which is asked for as a whole",
    "POST /access/tokens": "of a right, which is granted and asks for nothing",
    "POST /access/rules": "of a right, which is granted and asks for nothing",
    "GET /directory": "of entries of the directory",
    "GET /directory.ldif": "of entries of the directory",
}


@dataclass
class Seen:
    """What one operation asked for, and the filters that it brought to the broker."""

    asked: set[str] = field(default_factory=set)
    decided: Counter[str] = field(default_factory=Counter)  # as the audit log has it
    came: list[Filter] = field(default_factory=list)

    def forgotten(self) -> list[str]:
        names = [filter_resource(each) for each in self.came]
        return [name for name in names if name not in self.asked and not self._is_box(name)]

    def twice(self) -> list[str]:
        return [name for name, count in self.decided.items() if count > 1]

    def _is_box(self, name: str) -> bool:
        """A message box that somebody asked for has a topic that nobody named."""
        return name.startswith(OF_A_BOX) and ANY_BOX in self.asked


WATCHING: list[Seen] = []


class Recorded(DecidedBy):
    """Every decision that the audit log would have."""

    def decide(self, session: Session, action: Action, resource: str, about: About = None) -> None:
        if WATCHING and session.principal != BROKER and action is Action.SUBSCRIBE:
            WATCHING[-1].decided[resource] += 1
        super().decide(session, action, resource, about)


@contextmanager
def watching(broker: Refusing) -> Iterator[Seen]:
    """Meanwhile everybody may do everything, and it is seen."""
    seen = Seen()
    WATCHING.append(seen)

    def decide(session: Session, action: Action, resource: str) -> None:
        if session.principal != BROKER and action is Action.SUBSCRIBE:
            seen.asked.add(resource)

    def noting(method: Callable[..., Any], filter_of: Callable[..., Filter | None]) -> Any:
        def called(self: Broker, *args: Any, **kwargs: Any) -> Any:
            came = filter_of(*args)
            seen.came += [] if came is None else [came]
            return method(self, *args, **kwargs)

        return called

    ways: dict[str, Callable[..., Filter | None]] = {
        "subscribe": lambda asked, filter, *_: filter,
        "change": lambda name, change, *_: change.filter,
        "open_stream": lambda filter, *_: filter,
    }
    patches = [
        patch.object(Broker, name, noting(getattr(Broker, name), way)) for name, way in ways.items()
    ]
    broker.decisions.append(decide)
    for each in patches:
        each.start()
    try:
        yield seen
    finally:
        for each in patches:
            each.stop()
        broker.decisions.pop()
        WATCHING.pop()


def run(directory: Path, script: Callable[[Refusing], Awaitable[None]]) -> None:
    async def main() -> None:
        with patch.object(refusing_module, "DecidedBy", Recorded):
            async with refusing(directory, allow_all) as broker:
                await script(broker)

    uvloop.run(main())


# HTTP, by its description


def with_filters() -> dict[str, set[str]]:
    """The operations that take a filter, and the members that it is in."""
    found: dict[str, set[str]] = {}
    for path, methods in description()["paths"].items():
        for method, operation in methods.items():
            named = {each.get("name") for each in operation.get("parameters", [])}
            named |= _members(operation.get("requestBody", {}), ())
            if named & MEMBERS and f"{method.upper()} {path}" not in OF_OTHER_THINGS:
                found[f"{method.upper()} {path}"] = named & MEMBERS
    return found


def _members(schema: object, within: tuple[str, ...]) -> set[str]:
    if isinstance(schema, list):
        return set().union(*(_members(each, within) for each in schema))
    if not isinstance(schema, dict):
        return set()
    found = set(schema.get("properties", {}))
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in within:
        target: Any = description()
        for part in reference.split("/")[1:]:
            target = target[part]
        found |= _members(target, (*within, reference))
    return found.union(*(_members(each, within) for each in schema.values()))


@pytest.mark.parametrize("operation", with_filters())
def test_each_request_with_a_filter_asks_for_it(operation: str, tmp_path: Path) -> None:
    method, _, path = operation.partition(" ")
    (member,) = with_filters()[operation]

    async def script(broker: Refusing) -> None:
        port = broker.http.port
        if "{id}" in path:
            parent = path.removesuffix("/{id}")
            _, text = await fetch(port, "POST", parent, BODIES[f"POST {parent}"])
            own_id = text.partition('"id":"')[2].partition('"')[0]
        else:
            own_id = ""
        target = path.replace("{id}", own_id)
        body: Any = None
        if method == "GET":
            value = TEXT if member == "filter" else "RunId"
            target += f"?{member}={quote(value)}"
        else:
            also: Any = BODIES.get(operation, {})
            body = {**also, member: FILTERS if member == "filters" else ["RunId"]}

        with watching(broker) as seen:
            headers = SOCKET if path.endswith("/socket") else {}
            status, text = await fetch(port, method, target, body, headers)

            assert status < 300, text
            assert seen.came
            assert seen.forgotten() == []
            assert seen.twice() == []
            if member != "concepts":
                assert f"filter/{TEXT}" in seen.asked

    run(tmp_path, script)


def test_the_description_names_all_ways_to_subscribe_by_http() -> None:
    assert {
        "POST /subscriptions",
        "PATCH /subscriptions/{id}",
        "POST /boxes",
        "PATCH /boxes/{id}",
        "PUT /blackboard/subscribers",
        "GET /events/stream",
        "GET /events/socket",
        "GET /blackboard/stream",
    } == with_filters().keys()


@pytest.mark.parametrize("allowed", [True, False])
def test_who_may_not_subscribe_has_nothing_read_to_find_where_to_begin(
    allowed: bool, tmp_path: Path
) -> None:
    async def script(broker: Refusing) -> None:
        body = {
            "sink": "http://127.0.0.1:9/hook",
            "filters": FILTERS,
            "config": {"from": "2026-01-01T00:00:00Z"},
        }
        with watching(broker) as seen:
            broker.decisions.append(allow_all if allowed else deny_all)
            status, text = await fetch(broker.http.port, "POST", "/subscriptions", body)
            broker.decisions.pop()

        assert status == (201 if allowed else 403), text
        assert list(seen.decided.values()) == [1]
        assert bool(broker.reads) is allowed

    run(tmp_path, script)


# The others, by their tables


def test_each_soap_operation_that_subscribes_asks_for_the_filter(tmp_path: Path) -> None:
    subscribes: set[tuple[str, str]] = set()

    async def script(broker: Refusing) -> None:
        for operation in broker.soap.dispatcher.operations:
            with watching(broker) as seen:
                await answer_to(broker, *operation)
            assert seen.forgotten() == [], operation
            assert seen.twice() == [], operation
            if seen.came:
                subscribes.add(operation)

    run(tmp_path, script)

    assert {
        (names.WSE04, "Subscribe"),
        (names.WSE11, "Subscribe"),
        (names.WSN13, "Subscribe"),
        (names.MSGBOX, "createMsgBox"),
    } <= subscribes


def test_each_frame_that_subscribes_asks_for_the_filter(tmp_path: Path) -> None:
    subscribes: set[type] = set()

    async def script(broker: Refusing) -> None:
        for request in requests():
            with watching(broker) as seen:
                peer = await Tcp.connect(broker.frames.address)
                await peer.send(request)
                await peer.answer()
                await asyncio.sleep(0)
                peer.close()
            assert seen.forgotten() == [], request
            assert seen.twice() == [], request
            if seen.came:
                subscribes.add(type(request))

    run(tmp_path, script)

    assert subscribes == {gma.SubscribeRequest}


def test_each_command_of_the_blackboard_that_subscribes_asks_for_the_filter(
    tmp_path: Path,
) -> None:
    subscribes: set[str] = set()

    async def script(broker: Refusing) -> None:
        for name, message in COMMANDS.items():
            with watching(broker) as seen:
                await answer_in_socket(broker, "/blackboard/socket", message)
            assert seen.forgotten() == [], name
            assert seen.twice() == [], name
            if seen.came:
                subscribes.add(name)

    run(tmp_path, script)

    assert subscribes == {"subscribe"}


def test_the_messages_of_links_with_a_filter_are_those_that_are_decided() -> None:
    """That they are, `test_link_rights.py` shows."""
    with_filter = {each for each in get_args(link.Message) if "filter" in each.__struct_fields__}

    assert with_filter == {link.Subscribe, link.Advertise}
