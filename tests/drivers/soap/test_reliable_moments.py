"""Moments that a power cut seldom meets: the log is put back to how it was just then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
import uvloop

from tocsin.access.session import anonymous as anonymous_session
from tocsin.access.session import internal
from tocsin.config import load
from tocsin.drivers.application import Application
from tocsin.drivers.logger import Logger
from tocsin.drivers.node import Node
from tocsin.drivers.soap_services import SoapServices
from tocsin.services.reliable_messaging import receiver, sequences
from tocsin.services.soap.call import SoapCall
from tocsin.store.store import Store
from tocsin.wire.soap.addressing import EndpointReference, anonymous
from tocsin.wire.soap.envelope import content_type, read_envelope, write_envelope
from tocsin.wire.soap.names import WSA2005, WSN13, WSRM11
from tocsin.wire.wsrm import destination
from tocsin.wire.wsrm.messages import (
    Acknowledgement,
    CreateSequence,
    CreateSequenceResponse,
    Sequence,
)
from tocsin.wire.wsrm.ranges import Ranges
from tocsin.wire.wsrm.read import fault_name, read_blocks, read_content
from tocsin.wire.wsrm.write import write_content, write_sequence

PATIENCE_S = 10.0
SENDER = anonymous_session("soap", "127.0.0.1:2")
PLAIN = b"<reading>7</reading>"
NOTIFY = (
    f'<n:Notify xmlns:n="{WSN13}"><n:NotificationMessage><n:Message><a/></n:Message>'
    "</n:NotificationMessage><n:NotificationMessage><n:Message><b/></n:Message>"
    "</n:NotificationMessage></n:Notify>"
).encode()

Script = Callable[[Node, SoapServices], Awaitable[None]]


def run(directory: Path, script: Script) -> None:
    """A broker without listeners, from its start to its end."""

    async def main() -> None:
        settings, _ = load({"http.address": "127.0.0.1:0", "log.directory": str(directory)}, {})
        app = Application(settings, Store.open(directory), Logger())
        node = app.node
        soap = SoapServices(app)
        try:
            await asyncio.wait_for(script(node, soap), PATIENCE_S)
        finally:
            await soap.close()
            await app.close()

    uvloop.run(main())


async def post(soap: SoapServices, header: bytes, body: bytes) -> bytes:
    message = write_envelope("1.2", header=header, body=body)
    kind = content_type("1.2")
    call = SoapCall(message, kind, "", "/soap", "", "http://127.0.0.1:1", SENDER)
    return (await soap.answer(call)).body


async def begin(soap: SoapServices) -> str:
    back = EndpointReference(anonymous(WSA2005), WSA2005)
    answer = read_envelope(
        await post(soap, b"", write_content(CreateSequence(WSRM11, back), WSA2005))
    )
    assert answer.content is not None
    made = read_content(answer)
    assert isinstance(made, CreateSequenceResponse)
    return made.identifier


async def send(soap: SoapServices, identifier: str, number: int, body: bytes) -> Ranges:
    place = write_sequence(Sequence(WSRM11, identifier, number), "1.2")
    [acknowledgement] = read_blocks(read_envelope(await post(soap, place, body))).acknowledgements
    assert isinstance(acknowledgement, Acknowledgement)
    return acknowledgement.ranges


async def put_back(node: Node, kept: dict[str, bytes]) -> None:
    for key, value in kept.items():
        await node.port.keep(internal("test"), key, value)


@pytest.mark.parametrize(("body", "events"), [(PLAIN, 1), (NOTIFY, 2)])
def test_an_event_on_disk_whose_number_is_not_is_not_stored_again(
    tmp_path: Path, body: bytes, events: int
) -> None:
    identifier = ""

    async def before(node: Node, soap: SoapServices) -> None:
        nonlocal identifier
        identifier = await begin(soap)
        kept = node.broker.kept(sequences.PREFIX)
        assert await send(soap, identifier, 1, body) == ((1, 1),)
        assert node.broker.head == events
        await put_back(node, kept)

    async def after(node: Node, soap: SoapServices) -> None:
        assert await send(soap, identifier, 1, body) == ((1, 1),)
        assert node.broker.head == events
        assert await send(soap, identifier, 2, body) == ((1, 2),)
        assert node.broker.head == 2 * events

    run(tmp_path, before)
    run(tmp_path, after)


def test_a_held_message_that_was_processed_but_not_removed_is_not_stored_again(
    tmp_path: Path,
) -> None:
    identifier = ""

    async def before(node: Node, soap: SoapServices) -> None:
        nonlocal identifier
        identifier = await begin(soap)
        assert await send(soap, identifier, 2, PLAIN) == ((2, 2),)
        kept = node.broker.kept(f"{sequences.PREFIX}{identifier}/")
        assert len(kept) == 1
        await send(soap, identifier, 1, PLAIN)
        while node.broker.kept(f"{sequences.PREFIX}{identifier}/"):
            await asyncio.sleep(0.01)
        assert node.broker.head == 2
        await put_back(node, kept)

    async def after(node: Node, soap: SoapServices) -> None:
        while node.broker.kept(f"{sequences.PREFIX}{identifier}/"):
            await asyncio.sleep(0.01)
        assert await send(soap, identifier, 3, PLAIN) == ((1, 3),)
        assert node.broker.head == 3

    run(tmp_path, before)
    run(tmp_path, after)


def held_second(identifier: str) -> bytes:
    place = write_sequence(Sequence(WSRM11, identifier, 2), "1.2")
    return msgspec.msgpack.encode(
        sequences.Held(
            number=2,
            last=False,
            received_ns=0,
            body=write_envelope("1.2", header=place, body=PLAIN),
            content_type=content_type("1.2"),
            soap_action="",
            path="/soap",
            query="",
            base="http://127.0.0.1:1",
            peer="127.0.0.1:2",
        )
    )


def test_what_was_held_when_its_turn_had_come_is_stored_after_the_start(tmp_path: Path) -> None:
    identifier = ""

    async def before(node: Node, soap: SoapServices) -> None:
        nonlocal identifier
        identifier = await begin(soap)
        await send(soap, identifier, 1, PLAIN)
        await put_back(node, {f"{sequences.PREFIX}{identifier}/2": held_second(identifier)})

    async def after(node: Node, soap: SoapServices) -> None:
        while node.broker.head < 2:
            await asyncio.sleep(0.01)

    run(tmp_path, before)
    run(tmp_path, after)


def test_there_is_no_room_without_end(tmp_path: Path) -> None:
    async def script(node: Node, soap: SoapServices) -> None:
        identifier = await begin(soap)
        for number in range(2, destination.HELD_MAX + 2):
            await send(soap, identifier, number, PLAIN)
        late = destination.HELD_MAX + 2

        assert await send(soap, identifier, late, PLAIN) == ((2, late - 1),)
        assert await send(soap, identifier, 1, PLAIN) == ((1, late - 1),)
        while node.broker.head < late - 1:
            await asyncio.sleep(0.01)
        assert await send(soap, identifier, late, PLAIN) == ((1, late),)

    run(tmp_path, script)


def test_a_sequence_that_fell_silent_ends_and_what_it_held_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(receiver, "SWEEP_S", 0.02)
    identifier = ""

    async def busy(node: Node, soap: SoapServices) -> None:
        nonlocal identifier
        identifier = await begin(soap)
        await send(soap, identifier, 2, PLAIN)
        await asyncio.sleep(0.1)
        assert node.broker.head == 0

    async def silent(node: Node, soap: SoapServices) -> None:
        while node.broker.kept(sequences.PREFIX):
            await asyncio.sleep(0.01)
        assert node.broker.head == 1
        answer = await post(soap, write_sequence(Sequence(WSRM11, identifier, 1), "1.2"), PLAIN)
        assert fault_name(read_envelope(answer)) == "SequenceTerminated"

    run(tmp_path, busy)
    monkeypatch.setattr(receiver, "IDLE_NS_MAX", 0)
    run(tmp_path, silent)

    assert "a sequence ended" in capsys.readouterr().err


def test_sequences_are_limited_in_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "SEQUENCES_MAX", 2)

    async def script(_: Node, soap: SoapServices) -> None:
        await begin(soap)
        await begin(soap)
        back = EndpointReference(anonymous(WSA2005), WSA2005)
        asking = write_content(CreateSequence(WSRM11, back), WSA2005)
        answer = await post(soap, b"", asking)
        assert fault_name(read_envelope(answer)) == "CreateSequenceRefused"

    run(tmp_path, script)


def test_messages_that_come_all_at_once_are_stored_in_order(tmp_path: Path) -> None:
    async def script(node: Node, soap: SoapServices) -> None:
        identifier = await begin(soap)
        sends = [send(soap, identifier, n, b"<n>%d</n>" % n) for n in (3, 1, 2, 2, 5, 4, 1)]
        await asyncio.gather(*sends)
        while node.broker.head < 5:
            await asyncio.sleep(0.01)
        page = await node.read(lambda reader: reader.read(0, 10))
        stored = [event.event.data for event in page.events]
        assert stored == [b"<n>%d</n>" % n for n in range(1, 6)]

    run(tmp_path, script)
