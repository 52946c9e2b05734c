"""The log and the archive as Arrow over HTTP: every event once, holes told, limits kept."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from served import Served, served
from tocsin.archive.catalog import Catalog, Piece
from tocsin.archive.record import SCHEMA, to_events
from tocsin.archive.selection import select
from tocsin.drivers.http.rest.events.arrow import ANSWERS_MAX, LIMIT_MAX, plan_read, within_one_file
from tocsin.wire.api.arrow import FIRST, HEAD, MEDIA_TYPE, NEXT

COUNT = 3_000  # in the archive; half as many more are in the log alone


def asked(broker: Served, query: str) -> tuple[int, dict[str, str], bytes]:
    host, _, port = broker.address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    try:
        accept = {"Accept": f"application/json;q=0.5, {MEDIA_TYPE}"}
        connection.request("GET", f"/events{query}", headers=accept)
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def table(body: bytes) -> pa.Table:
    return pa.ipc.open_stream(body).read_all()


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    """Its first events are archived, its last are only in the log."""
    with served(env={"TOCSIN_ARCHIVE__ROLL_S": "1"}) as found:
        for start in range(0, COUNT, 1_000):
            found.publish(
                *(
                    {"data": {"RunId": f"r{n}", "ExitCode": "0", "text": _noise(n)}}
                    for n in range(start, start + 1_000)
                )
            )
        until = time.monotonic() + 30
        while Catalog(found.directory / "archive").through() < COUNT:
            assert time.monotonic() < until, found.said()
            time.sleep(0.1)
        found.publish(*({"subject": f"s{n}"} for n in range(COUNT // 2)))
        yield found


def _noise(seed: int) -> str:
    """What no compression makes small: answers must not fit into the buffers of a socket."""
    return Random(seed).randbytes(2_500).hex()


def test_an_answer_goes_from_the_archive_on_into_the_log_and_is_what_the_log_says(
    broker: Served,
) -> None:
    head = COUNT + COUNT // 2
    status, headers, body = asked(broker, f"?limit={LIMIT_MAX}")

    found = table(body)
    assert status == 200
    assert headers["content-type"] == MEDIA_TYPE
    assert [int(headers[name]) for name in (FIRST, NEXT, HEAD)] == [1, head, head]
    assert found.schema.equals(SCHEMA, check_metadata=True)
    assert found["seq"].to_pylist() == list(range(1, head + 1))
    reported = to_events(found)
    for after in (0, COUNT - 1, head - 1):
        _, page = broker.call("GET", f"/events?after={after}&limit=1")
        assert reported[after].event.id == page["events"][0]["id"]


def test_a_reader_goes_on_where_an_answer_ended_and_names_the_columns_it_wants(
    broker: Served,
) -> None:
    reached, found = COUNT - 700, []
    while True:
        _, headers, body = asked(
            broker, f"?after={reached}&limit=500&columns=run,seq,facts.ExitCode"
        )
        found.append(table(body))
        assert found[-1].schema.equals(select(["run", "seq", "facts.ExitCode"]))
        if int(headers[NEXT]) == reached:
            break
        reached = int(headers[NEXT])

    read = pa.concat_tables(found)
    assert read["seq"].to_pylist() == list(range(COUNT - 699, COUNT + COUNT // 2 + 1))
    assert read.slice(0, 1).to_pylist() == [
        {"run": f"r{COUNT - 700}", "seq": COUNT - 699, "facts": {"ExitCode": 0}}
    ]
    _, headers, body = asked(broker, "?limit=0")
    assert table(body).num_rows == 0
    assert headers[NEXT] == "0"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (f"?limit={LIMIT_MAX + 1}", f"from 0 to {LIMIT_MAX}"),
        ("?columns=seq,rum", "did you mean run"),
        ("?columns=facts.", "no member of facts"),
        ("?filter=load>5", "which is not a known parameter"),
        ("?checked=maybe", "Choose one of yes, no"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_with_what_can(
    broker: Served, query: str, words: str
) -> None:
    status, headers, body = asked(broker, query)

    assert status == 400
    assert headers["content-type"] == "application/problem+json"
    assert words in body.decode()


def test_readers_that_do_not_read_hold_up_nobody_but_further_readers(broker: Served) -> None:
    host, _, port = broker.address.rpartition(":")
    slow = []
    try:
        for _ in range(ANSWERS_MAX):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.connect((host, int(port)))
            query = "limit=100000&columns=data"
            request = (
                f"GET /events?{query} HTTP/1.1\r\nHost: {host}\r\nAccept: {MEDIA_TYPE}\r\n\r\n"
            )
            connection.sendall(request.encode())
            assert connection.recv(12) == b"HTTP/1.1 200"
            slow.append(connection)

        status, headers, body = asked(broker, "?limit=1")
        assert (status, json.loads(body)["code"]) == (503, "T207")
        assert int(headers["retry-after"]) >= 1
        assert broker.call("GET", "/events?limit=1")[0] == 200
        assert broker.publish({"subject": "meanwhile"})["accepted"] == 1
    finally:
        for connection in slow:
            connection.close()
    until = time.monotonic() + 10
    while asked(broker, "?limit=1")[0] != 200:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_the_log_stands_in_for_a_damaged_file_of_the_archive(broker: Served) -> None:
    damaged = Path(Catalog(broker.directory / "archive").pieces()[0].path)
    whole = damaged.read_bytes()
    try:
        damaged.write_bytes(whole[:-50])
        answers = [asked(broker, f"?limit=50&checked={each}") for each in ("yes", "no")]
    finally:
        damaged.write_bytes(whole)

    for _, _, body in answers:
        assert table(body)["seq"].to_pylist() == list(range(1, 51))
    assert "a damaged archive file is read from the log instead" in broker.said()


def test_an_archive_that_was_filled_from_another_log_is_not_given_as_this_one(
    broker: Served,
) -> None:
    archive = str(broker.directory / "archive")
    with served(env={"TOCSIN_ARCHIVE__DIRECTORY": archive}) as other:
        other.publish({"subject": "mine"})
        _, headers, body = asked(other, "?columns=seq,subject")

    assert table(body).to_pylist() == [{"seq": 1, "subject": "mine"}]
    assert headers[HEAD] == "1"


RANGES = st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=8)


@given(
    ranges=RANGES,
    beyond=st.integers(0, 9),
    limit=st.integers(1, 12),
    is_checked=st.booleans(),
    data=st.data(),
)
def test_who_follows_next_meets_every_event_once_and_is_told_of_every_hole(
    ranges: list[tuple[int, bool]], beyond: int, limit: int, is_checked: bool, data: st.DataObject
) -> None:
    pieces, last = [], 0
    for size, is_there in ranges:
        if is_there:
            pieces.append(Piece(last + 1, last + size, f"f{last}", False, 1))
        last += size
    head = last + beyond
    trimmed_to = data.draw(st.integers(0, head))
    there = set(range(trimmed_to + 1, head + 1))
    there |= {n for each in pieces for n in range(each.first, each.last + 1)}

    after, met, reported = 0, [], []
    while True:
        found = plan_read(pieces, trimmed_to, head, after=after, limit=limit)
        if is_checked:
            found = within_one_file(found)
        reported += range(after + 1, min(found.first, found.head + 1))
        if found.first > found.head:
            break
        met += range(found.first, found.through + 1)
        assert found.through >= found.first
        after = found.through

    assert met == sorted(there)
    assert reported == [n for n in range(1, after + 1) if n not in there] + list(
        range(after + 1, found.head + 1)
    )
