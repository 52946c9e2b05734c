"""The SOAP.TCP listener: many messages on one connection, answered in order, bad ones logged."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from soap_tcp_bench import Bench, a_bench

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

bench = pytest.fixture(a_bench)


def addressed(to: str, *, soap: str = SOAP12, wsa: str = WSA2005) -> bytes:
    return (
        f'<s:Envelope xmlns:s="{soap}" xmlns:a="{wsa}"><s:Header><a:To> {to} </a:To></s:Header>'
        "<s:Body/></s:Envelope>"
    ).encode()


def test_many_messages_of_a_connection_are_answered_in_order(bench: Bench) -> None:
    bench.open()

    async def talk() -> list[bytes | None]:
        peer = await bench.peer()
        for number in range(50):
            peer.send(b"<n>%d</n>" % number)
        return [await peer.answer() for _ in range(50)]

    assert bench.run(talk()) == [b"<answer><n>%d</n></answer>" % n for n in range(50)]


def test_messages_may_be_cut_anywhere(bench: Bench) -> None:
    bench.open()
    part = Part(TypeFormat.URI, SOAP12.encode(), b"", b"<long>" + b"x" * 300 + b"</long>")
    stream = encode(Message((part,)), chunk_bytes_max=100, terminated=True)

    async def talk() -> bytes | None:
        peer = await bench.peer()
        for at in range(0, len(stream), 5):
            peer.writer.write(stream[at : at + 5])
            await asyncio.sleep(0.001)
        return await peer.answer()

    assert bench.run(talk()) == b"<answer>" + part.data + b"</answer>"


def test_the_message_of_wse_is_answered_with_its_version_of_soap(bench: Bench) -> None:
    bench.open()

    async def talk() -> Message | None:
        peer = await bench.peer()
        peer.writer.write((CAPTURES / "wsetcp_dime_soap11_01_req.bin").read_bytes())
        return await peer.message()

    message = bench.run(talk())

    assert message is not None
    assert read_envelope_message(message)[0] == "1.1"
    (call,) = bench.calls
    assert call.content_type == "text/xml"
    assert call.path == "/soap"  # it was sent to wse.tcp://localhost:9100/a/
    assert call.body.startswith(b"<?xml")
    assert call.body.endswith(b"</s:Envelope>")


def test_soap_12_is_answered_as_such_and_the_call_says_how_it_came(bench: Bench) -> None:
    listener = bench.open()

    async def talk() -> Message | None:
        peer = await bench.peer()
        peer.send(addressed(f"soap.tcp://{listener.address}/soap/subscriptions/7?x=1"), "1.2")
        return await peer.message()

    message = bench.run(talk())

    assert message is not None
    assert message.parts[0].type == SOAP12.encode()
    (call,) = bench.calls
    assert (call.content_type, call.soap_action) == ("application/soap+xml", "")
    assert (call.path, call.query) == ("/soap/subscriptions/7", "x=1")
    assert call.base == f"soap.tcp://{listener.address}"
    assert call.session.peer.startswith("127.0.0.1:")


def test_a_one_way_message_gets_no_answer_and_the_next_one_does(bench: Bench) -> None:
    async def answer(call: SoapCall) -> SoapAnswer:
        return SoapAnswer(202, "", b"") if b"Notify" in call.body else await bench.echo(call)

    bench.open(answer)

    async def talk() -> bytes | None:
        peer = await bench.peer()
        peer.send(b"<Notify/>")
        peer.send(b"<Ask/>")
        return await peer.answer()

    assert bench.run(talk()) == b"<answer><Ask/></answer>"


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
        ("http://h:8400/soap/subscriptions/9", "/soap/subscriptions/9"),  # made by another listener
        ("soap.tcp://h:1/", "/soap"),
        ("soap.tcp://h:1", "/soap"),
        ("http://www.w3.org/2005/08/addressing/anonymous", "/soap"),
        ("urn:x", "/soap"),
        ("soap.tcp://[bad/soap", "/soap"),
        ("", "/soap"),
    ],
)
def test_what_names_no_path_here_gets_the_default_path(to: str, path: str) -> None:
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
    bench: Bench, problem: str
) -> None:
    bench.open()

    async def talk() -> list[bytes | None]:
        peer = await bench.peer()
        peer.send(b"<good/>")
        first = await peer.answer()
        peer.writer.write(HOSTILE[problem])
        return [first, await peer.answer()]

    assert bench.run(talk()) == [b"<answer><good/></answer>", None]
    ((level, message, fields),) = bench.notes
    assert level == "warning"
    assert problem in message
    assert fields["code"] == "T212"
    assert fields["peer"].startswith("127.0.0.1:")


def test_a_peer_that_leaves_within_a_message_costs_nothing_but_a_note(bench: Bench) -> None:
    bench.open()

    async def talk() -> bytes | None:
        leaving = await bench.peer()
        leaving.writer.write(envelope_message("1.1", b"<never/>")[:-5])
        leaving.writer.write_eof()
        assert await leaving.answer() is None
        staying = await bench.peer()
        staying.send(b"<a/>")
        return await staying.answer()

    assert bench.run(talk()) == b"<answer><a/></answer>"
    assert [message for _, message, _ in bench.notes] == [
        "the connection ended in the middle of a message"
    ]
    assert [call.body for call in bench.calls] == [b"<a/>"]


def test_who_has_said_all_still_gets_the_answers(bench: Bench) -> None:
    bench.open()

    async def talk() -> list[bytes | None]:
        peer = await bench.peer()
        peer.send(b"<a/>")
        peer.send(b"<b/>")
        peer.writer.write_eof()
        return [await peer.answer() for _ in range(3)]

    assert bench.run(talk()) == [b"<answer><a/></answer>", b"<answer><b/></answer>", None]


def test_a_message_that_does_not_come_is_not_awaited_for_ever(bench: Bench) -> None:
    bench.limits = SoapTcpSettings(message_deadline_s=0.2, bytes_per_s_min=1 << 20)
    bench.open()

    async def talk() -> bytes | None:
        peer = await bench.peer()
        peer.writer.write(envelope_message("1.1", b"<slow/>")[:40])
        return await peer.answer()

    assert bench.run(talk()) is None
    assert "only 40 bytes of a message arrived in time" in bench.notes[0][1]
    assert bench.notes[0][2]["code"] == "T203"


def test_a_long_message_may_take_its_time_while_it_flows(bench: Bench) -> None:
    bench.limits = SoapTcpSettings(message_deadline_s=0.15, bytes_per_s_min=1_000)
    bench.open()
    stream = envelope_message("1.1", b"x" * 4_000)

    async def talk() -> bytes | None:
        peer = await bench.peer()
        for at in range(0, len(stream), 1_000):
            peer.writer.write(stream[at : at + 1_000])
            await asyncio.sleep(0.1)
        return await peer.answer()

    assert bench.run(talk()) is not None


def test_an_idle_connection_is_closed_without_a_word(bench: Bench) -> None:
    bench.limits = SoapTcpSettings(idle_s=0.2, message_deadline_s=0.01)
    bench.open()

    async def talk() -> list[bytes | None]:
        peer = await bench.peer()
        peer.send(b"<a/>")
        return [await peer.answer(), await peer.answer()]

    assert bench.run(talk()) == [b"<answer><a/></answer>", None]
    assert bench.notes == []


def test_who_does_not_read_its_answers_is_cut_off_and_slowed_before(bench: Bench) -> None:
    bench.limits = SoapTcpSettings(stalled_reader_s=0.3)
    answered = 0

    async def flood(call: SoapCall) -> SoapAnswer:
        nonlocal answered
        answered += 1
        return SoapAnswer(200, "text/xml", b"x" * (1 << 20))

    bench.open(flood)

    async def talk() -> None:
        peer = await bench.peer(limit=1_000)
        for _ in range(200):
            peer.send(b"<a/>")
        async with asyncio.timeout(10):
            while not bench.notes:
                await asyncio.sleep(0.05)

    bench.run(talk())

    assert "does not read its answers" in bench.notes[0][1]
    assert answered < 50


def test_more_connections_than_there_may_be_are_turned_away(bench: Bench) -> None:
    bench.limits = SoapTcpSettings(connections_max=2)
    listener = bench.open()

    async def talk() -> list[bytes | None]:
        peers = [await bench.peer() for _ in range(2)]
        for peer in peers:
            peer.send(b"<a/>")
        answers = [await peer.answer() for peer in peers]
        third = await bench.peer()
        answers.append(await third.answer())
        peers[0].writer.close()
        await asyncio.sleep(0.1)
        fourth = await bench.peer()
        fourth.send(b"<d/>")
        return [*answers, await fourth.answer()]

    same = b"<answer><a/></answer>"
    assert bench.run(talk()) == [same, same, None, b"<answer><d/></answer>"]
    assert listener.refused == 1
    assert [message for _, message, _ in bench.notes] == [
        "the SOAP.TCP listener has as many connections as soap_tcp.connections_max allows"
    ]


def test_closing_lets_what_is_under_way_be_answered_and_hangs_up_on_the_others(
    bench: Bench,
) -> None:
    async def slow(call: SoapCall) -> SoapAnswer:
        await asyncio.sleep(0.3)
        return await bench.echo(call)

    listener = bench.open(slow)

    async def talk() -> list[bytes | None]:
        busy, idle = await bench.peer(), await bench.peer()
        busy.send(b"<a/>")
        busy.send(b"<too-late/>")
        await asyncio.sleep(0.1)
        closing = asyncio.create_task(listener.close())
        answers = [await idle.answer(), await busy.answer(), await busy.answer()]
        await closing
        return answers

    assert bench.run(talk()) == [None, b"<answer><a/></answer>", None]
    assert [call.body for call in bench.calls] == [b"<a/>"]


def test_closing_does_not_wait_for_what_does_not_end(bench: Bench) -> None:
    async def never(call: SoapCall) -> SoapAnswer:
        await asyncio.sleep(3_600)
        raise AssertionError

    listener = bench.open(never)

    async def talk() -> float:
        peer = await bench.peer()
        peer.send(b"<a/>")
        await asyncio.sleep(0.05)
        began_s = time.monotonic()
        await listener.close()
        return time.monotonic() - began_s

    assert bench.run(talk()) < 1.5


def test_a_bug_in_who_answers_costs_one_connection_and_is_logged(bench: Bench) -> None:
    async def buggy(call: SoapCall) -> SoapAnswer:
        if b"bug" in call.body:
            raise ZeroDivisionError("no")
        return await bench.echo(call)

    bench.open(buggy)

    async def talk() -> list[bytes | None]:
        first, second = await bench.peer(), await bench.peer()
        first.send(b"<bug/>")
        second.send(b"<a/>")
        return [await first.answer(), await second.answer()]

    assert bench.run(talk()) == [None, b"<answer><a/></answer>"]
    assert bench.notes[0][0] == "error"
    assert bench.notes[0][2]["error"] == "ZeroDivisionError: no"


def test_an_address_in_use_names_the_flag(bench: Bench) -> None:
    listener = bench.open()

    with pytest.raises(BadSetting, match="--soap-tcp"):
        bench.run(_open_again(bench, listener.address))


async def _open_again(bench: Bench, address: str) -> None:
    from tocsin.drivers.soap_tcp.listener import listen

    await listen(bench.echo, address, bench.limits, lambda *_, **__: None)
