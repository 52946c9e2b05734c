"""The SOAP.TCP door: many messages on one connection, answered in order, and bad ones told."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from soap_tcp_room import Room, a_room

from tocsin.config import SoapTcpSettings
from tocsin.drivers.soap_tcp.destination import path_and_query
from tocsin.errors import BadSetting
from tocsin.services.soap.call import SoapAnswer, SoapCall
from tocsin.wire.dime import (
    Message,
    Part,
    TypeFormat,
    encode,
    envelope_message,
    read_envelope_message,
)
from tocsin.wire.soap.names import SOAP11, SOAP12, WSA2005, WSA_NAMESPACES

CAPTURES = Path(__file__).parent.parent.parent / "captures" / "ws"

room = pytest.fixture(a_room)


def addressed(to: str, *, soap: str = SOAP12, wsa: str = WSA2005) -> bytes:
    return (
        f'<s:Envelope xmlns:s="{soap}" xmlns:a="{wsa}"><s:Header><a:To> {to} </a:To></s:Header>'
        "<s:Body/></s:Envelope>"
    ).encode()


def test_many_messages_of_a_connection_are_answered_in_order(room: Room) -> None:
    room.open()

    async def talk() -> list[bytes | None]:
        peer = await room.peer()
        for number in range(50):
            peer.send(b"<n>%d</n>" % number)
        return [await peer.answer() for _ in range(50)]

    assert room.run(talk()) == [b"<answer><n>%d</n></answer>" % n for n in range(50)]


def test_messages_may_be_cut_anywhere(room: Room) -> None:
    room.open()
    part = Part(TypeFormat.URI, SOAP12.encode(), b"", b"<long>" + b"x" * 300 + b"</long>")
    stream = encode(Message((part,)), chunk_bytes_max=100, terminated=True)

    async def talk() -> bytes | None:
        peer = await room.peer()
        for at in range(0, len(stream), 5):
            peer.writer.write(stream[at : at + 5])
            await asyncio.sleep(0.001)
        return await peer.answer()

    assert room.run(talk()) == b"<answer>" + part.data + b"</answer>"


def test_the_message_of_wse_is_answered_with_its_version_of_soap(room: Room) -> None:
    room.open()

    async def talk() -> Message | None:
        peer = await room.peer()
        peer.writer.write((CAPTURES / "wsetcp_dime_soap11_01_req.bin").read_bytes())
        return await peer.message()

    message = room.run(talk())

    assert message is not None
    assert read_envelope_message(message)[0] == "1.1"
    (call,) = room.calls
    assert call.content_type == "text/xml"
    assert call.path == "/soap"  # it was sent to wse.tcp://localhost:9100/a/
    assert call.body.startswith(b"<?xml")
    assert call.body.endswith(b"</s:Envelope>")


def test_soap_12_is_answered_as_such_and_the_call_says_how_it_came(room: Room) -> None:
    door = room.open()

    async def talk() -> Message | None:
        peer = await room.peer()
        peer.send(addressed(f"soap.tcp://{door.address}/soap/subscriptions/7?x=1"), "1.2")
        return await peer.message()

    message = room.run(talk())

    assert message is not None
    assert message.parts[0].type == SOAP12.encode()
    (call,) = room.calls
    assert (call.content_type, call.soap_action) == ("application/soap+xml", "")
    assert (call.path, call.query) == ("/soap/subscriptions/7", "x=1")
    assert call.base == f"soap.tcp://{door.address}"
    assert call.session.peer.startswith("127.0.0.1:")


def test_a_one_way_message_gets_no_answer_and_the_next_one_does(room: Room) -> None:
    async def answer(call: SoapCall) -> SoapAnswer:
        return SoapAnswer(202, "", b"") if b"Notify" in call.body else await room.echo(call)

    room.open(answer)

    async def talk() -> bytes | None:
        peer = await room.peer()
        peer.send(b"<Notify/>")
        peer.send(b"<Ask/>")
        return await peer.answer()

    assert room.run(talk()) == b"<answer><Ask/></answer>"


@pytest.mark.parametrize("wsa", WSA_NAMESPACES)
@pytest.mark.parametrize("soap", [SOAP11, SOAP12])
def test_the_header_to_says_whom_a_message_is_for(soap: str, wsa: str) -> None:
    envelope = addressed("soap.tcp://broker:8402/soap/boxes/1", soap=soap, wsa=wsa)

    assert path_and_query(envelope) == ("/soap/boxes/1", "")


@pytest.mark.parametrize(
    ("to", "path"),
    [
        ("soap.tcp://h:1/wsman", "/wsman"),
        ("SOAP.TCP://h/soap", "/soap"),
        ("http://h:8400/soap/subscriptions/9", "/soap/subscriptions/9"),  # made by another door
        ("soap.tcp://h:1/", "/soap"),
        ("soap.tcp://h:1", "/soap"),
        ("http://www.w3.org/2005/08/addressing/anonymous", "/soap"),
        ("urn:x", "/soap"),
        ("soap.tcp://[bad/soap", "/soap"),
        ("", "/soap"),
    ],
)
def test_what_names_no_place_here_is_for_the_door(to: str, path: str) -> None:
    assert path_and_query(addressed(to))[0] == path


@pytest.mark.parametrize("envelope", [b"", b"<", b"<!DOCTYPE a><a/>", b"<a/>"])
def test_an_envelope_that_cannot_be_read_is_left_to_who_answers(envelope: bytes) -> None:
    assert path_and_query(envelope) == ("/soap", "")


HOSTILE = {
    "which is not DIME": b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "4294967295 bytes": bytes.fromhex("0e20 0000 0000 0029 ffff ffff"),
    "is of the type b'text/html'": encode(
        Message((Part(TypeFormat.MEDIA_TYPE, b"text/html", b"", b"<a/>"),))
    ),
    "has 2 parts": encode(Message((Part(TypeFormat.URI, SOAP11.encode(), b"", b"<a/>"),) * 2)),
}


@pytest.mark.parametrize("problem", HOSTILE)
def test_what_is_no_message_closes_the_connection_and_the_log_says_why(
    room: Room, problem: str
) -> None:
    room.open()

    async def talk() -> list[bytes | None]:
        peer = await room.peer()
        peer.send(b"<good/>")
        first = await peer.answer()
        peer.writer.write(HOSTILE[problem])
        return [first, await peer.answer()]

    assert room.run(talk()) == [b"<answer><good/></answer>", None]
    ((level, message, fields),) = room.notes
    assert level == "warning"
    assert problem in message
    assert fields["code"] == "T212"
    assert fields["peer"].startswith("127.0.0.1:")


def test_a_peer_that_leaves_within_a_message_costs_nothing_but_a_note(room: Room) -> None:
    room.open()

    async def talk() -> bytes | None:
        leaving = await room.peer()
        leaving.writer.write(envelope_message("1.1", b"<never/>")[:-5])
        leaving.writer.write_eof()
        assert await leaving.answer() is None
        staying = await room.peer()
        staying.send(b"<a/>")
        return await staying.answer()

    assert room.run(talk()) == b"<answer><a/></answer>"
    assert [message for _, message, _ in room.notes] == [
        "the connection ended in the middle of a message"
    ]
    assert [call.body for call in room.calls] == [b"<a/>"]


def test_who_has_said_all_still_gets_the_answers(room: Room) -> None:
    room.open()

    async def talk() -> list[bytes | None]:
        peer = await room.peer()
        peer.send(b"<a/>")
        peer.send(b"<b/>")
        peer.writer.write_eof()
        return [await peer.answer() for _ in range(3)]

    assert room.run(talk()) == [b"<answer><a/></answer>", b"<answer><b/></answer>", None]


def test_a_message_that_does_not_come_is_not_awaited_for_ever(room: Room) -> None:
    room.limits = SoapTcpSettings(message_deadline_s=0.2, bytes_per_s_min=1 << 20)
    room.open()

    async def talk() -> bytes | None:
        peer = await room.peer()
        peer.writer.write(envelope_message("1.1", b"<slow/>")[:40])
        return await peer.answer()

    assert room.run(talk()) is None
    assert "only 40 bytes of a message arrived in time" in room.notes[0][1]
    assert room.notes[0][2]["code"] == "T203"


def test_a_long_message_may_take_its_time_while_it_flows(room: Room) -> None:
    room.limits = SoapTcpSettings(message_deadline_s=0.15, bytes_per_s_min=1_000)
    room.open()
    stream = envelope_message("1.1", b"x" * 4_000)

    async def talk() -> bytes | None:
        peer = await room.peer()
        for at in range(0, len(stream), 1_000):
            peer.writer.write(stream[at : at + 1_000])
            await asyncio.sleep(0.1)
        return await peer.answer()

    assert room.run(talk()) is not None


def test_an_idle_connection_is_closed_without_a_word(room: Room) -> None:
    room.limits = SoapTcpSettings(idle_s=0.2, message_deadline_s=0.01)
    room.open()

    async def talk() -> list[bytes | None]:
        peer = await room.peer()
        peer.send(b"<a/>")
        return [await peer.answer(), await peer.answer()]

    assert room.run(talk()) == [b"<answer><a/></answer>", None]
    assert room.notes == []


def test_who_does_not_read_its_answers_is_cut_off_and_slowed_before(room: Room) -> None:
    room.limits = SoapTcpSettings(stalled_reader_s=0.3)
    answered = 0

    async def flood(call: SoapCall) -> SoapAnswer:
        nonlocal answered
        answered += 1
        return SoapAnswer(200, "text/xml", b"x" * (1 << 20))

    room.open(flood)

    async def talk() -> None:
        peer = await room.peer(limit=1_000)
        for _ in range(200):
            peer.send(b"<a/>")
        async with asyncio.timeout(10):
            while not room.notes:
                await asyncio.sleep(0.05)

    room.run(talk())

    assert "does not read its answers" in room.notes[0][1]
    assert answered < 50


def test_more_connections_than_there_may_be_are_turned_away(room: Room) -> None:
    room.limits = SoapTcpSettings(connections_max=2)
    door = room.open()

    async def talk() -> list[bytes | None]:
        peers = [await room.peer() for _ in range(2)]
        for peer in peers:
            peer.send(b"<a/>")
        answers = [await peer.answer() for peer in peers]
        third = await room.peer()
        answers.append(await third.answer())
        peers[0].writer.close()
        await asyncio.sleep(0.1)
        fourth = await room.peer()
        fourth.send(b"<d/>")
        return [*answers, await fourth.answer()]

    same = b"<answer><a/></answer>"
    assert room.run(talk()) == [same, same, None, b"<answer><d/></answer>"]
    assert door.refused == 1
    assert [message for _, message, _ in room.notes] == [
        "the SOAP.TCP listener has as many connections as soap_tcp.connections_max allows"
    ]


def test_closing_lets_what_is_under_way_be_answered_and_hangs_up_on_the_others(room: Room) -> None:
    async def slow(call: SoapCall) -> SoapAnswer:
        await asyncio.sleep(0.3)
        return await room.echo(call)

    door = room.open(slow)

    async def talk() -> list[bytes | None]:
        busy, idle = await room.peer(), await room.peer()
        busy.send(b"<a/>")
        busy.send(b"<too-late/>")
        await asyncio.sleep(0.1)
        closing = asyncio.create_task(door.close())
        answers = [await idle.answer(), await busy.answer(), await busy.answer()]
        await closing
        return answers

    assert room.run(talk()) == [None, b"<answer><a/></answer>", None]
    assert [call.body for call in room.calls] == [b"<a/>"]


def test_closing_does_not_wait_for_what_does_not_end(room: Room) -> None:
    async def never(call: SoapCall) -> SoapAnswer:
        await asyncio.sleep(3_600)
        raise AssertionError

    door = room.open(never)

    async def talk() -> float:
        peer = await room.peer()
        peer.send(b"<a/>")
        await asyncio.sleep(0.05)
        began_s = time.monotonic()
        await door.close()
        return time.monotonic() - began_s

    assert room.run(talk()) < 1.5


def test_a_bug_in_who_answers_costs_one_connection_and_is_told(room: Room) -> None:
    async def buggy(call: SoapCall) -> SoapAnswer:
        if b"bug" in call.body:
            raise ZeroDivisionError("no")
        return await room.echo(call)

    room.open(buggy)

    async def talk() -> list[bytes | None]:
        first, second = await room.peer(), await room.peer()
        first.send(b"<bug/>")
        second.send(b"<a/>")
        return [await first.answer(), await second.answer()]

    assert room.run(talk()) == [None, b"<answer><a/></answer>"]
    assert room.notes[0][0] == "error"
    assert room.notes[0][2]["error"] == "ZeroDivisionError: no"


def test_an_address_in_use_names_the_flag(room: Room) -> None:
    door = room.open()

    with pytest.raises(BadSetting, match="--soap-tcp"):
        room.run(_open_again(room, door.address))


async def _open_again(room: Room, address: str) -> None:
    from tocsin.drivers.soap_tcp.door import listen

    await listen(room.echo, address, room.limits, lambda *_, **__: None)
