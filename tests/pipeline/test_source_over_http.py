"""What the source `tocsin` makes of a broker's answers, whole, broken off or none of ours."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from pipeline.archives import batch_of
from pipeline.reading import batch_reader, numbers, stream_reader
from served import Served, served
from tocsin.archive.catalog import Catalog, Piece
from tocsin.archive.record import SCHEMA
from tocsin.drivers.http.rest.events.arrow import plan_read
from tocsin.errors import BrokerRefused, CannotReachBroker, TocsinError
from tocsin.errors.archive import BadArchiveFile
from tocsin.errors.pipeline import BadPipelineOption
from tocsin.errors.spark import EventsGone, NotArrow
from tocsin.pipeline.job import Job, run
from tocsin.pipeline.read.archive import new_records
from tocsin.pipeline.state import Window
from tocsin.tables.published import require
from tocsin.wire.api.arrow import FIRST, HEAD, MEDIA_TYPE, NEXT
from waiting import wait_until


def test_a_broker_gives_what_its_directory_gives_and_survives_being_killed() -> None:
    with served(env={"TOCSIN_ARCHIVE__ROLL_S": "1"}) as broker:
        broker.publish(*({"data": {"RunId": f"r{n}"}} for n in range(1_000)))
        archive = broker.directory / "archive"
        until = time.monotonic() + 30
        while Catalog(archive).through() < 1_000:
            assert time.monotonic() < until, broker.said()
            time.sleep(0.1)
        broker.publish(*({"data": {"RunId": f"s{n}"}} for n in range(500)))
        reader = batch_reader(broker.url, columns="id,run,seq", rows_per_partition=400)
        shares = reader.partitions()
        assert len(shares) == 4

        broker.kill()
        starting = threading.Timer(1.0, broker.start)
        starting.start()
        found = pa.Table.from_batches([b for share in shares for b in reader.read(share)])
        starting.join()

        assert found["seq"].to_pylist() == list(range(1, 1_501))
        direct = batch_reader(archive, columns="id,run,seq", through=1_000)
        files = pa.Table.from_batches([b for s in direct.partitions() for b in direct.read(s)])
        assert found.slice(0, files.num_rows).equals(files)
        stream = stream_reader(broker.url)
        assert stream.latestOffset(stream.initialOffset(), ReadAllAvailable()) == {"seq": 1_500}


@pytest.fixture(scope="module")
def trimmed_broker() -> Iterator[Served]:
    """Its log has let go of its first 300 events, which are in three sealed files."""
    env = {
        "TOCSIN_ARCHIVE__ROLL_S": "1",
        "TOCSIN_ARCHIVE__SEAL_BYTES": "1",
        "TOCSIN_LOG__RETAIN_AGE_S": "1",
    }
    with served(env=env) as broker:
        for count in (100, 200, 300):
            broker.publish(*({"data": {"RunId": f"r{n}"}} for n in range(100)))
            wait_until(
                what=broker.said,
                holds=lambda count=count: sealed(broker)[-1:] == [(count - 99, count)],
            )
        wait_until(
            what=broker.said, holds=lambda: broker.call("GET", "/events?limit=1")[1]["events"] == []
        )
        yield broker


def sealed(broker: Served) -> list[tuple[int, int]]:
    pieces = Catalog(broker.directory / "archive").pieces()
    return [(each.first, each.last) for each in pieces if not each.is_fresh]


@contextmanager
def damaged(broker: Served, number: int) -> Iterator[Path]:
    """One of the files of its archive, with something else where its events' ids should be."""
    path = Path(Catalog(broker.directory / "archive").pieces()[number].path)
    whole = path.read_bytes()
    group = pq.ParquetFile(path).metadata.row_group(0)
    places = {group.column(n).path_in_schema: n for n in range(group.num_columns)}
    begin = group.column(places["id"]).data_page_offset
    path.write_bytes(whole[:begin] + b"\xff" * 40 + whole[begin + 40 :])
    try:
        yield path
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_damaged_file_of_a_broker_is_named_with_what_to_do_or_passed_over_and_logged(
    trimmed_broker: Served, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    url, columns = trimmed_broker.url, "seq,id"
    first, last = number * 100 + 1, number * 100 + 100
    with damaged(trimmed_broker, number) as path:
        begun_s = time.monotonic()
        with pytest.raises(BadArchiveFile, match=r"Restore it from a backup") as caught:
            numbers(batch_reader(url, columns=columns, retries=1))
        took_s = time.monotonic() - begun_s
        left = [
            numbers(batch_reader(url, columns=columns, bad_files="skip", rows_per_partition=rows))
            for rows in (1_000, 70)
        ]
        elsewhere = numbers(batch_reader(url, columns="seq"))
        query = f"/events?after={first - 1}&columns=id&checked=yes"
        status, problem = trimmed_broker.call("GET", query, headers={"Accept": MEDIA_TYPE})

    assert str(path) in str(caught.value)
    assert "bad_files=skip" in "".join(caught.value.__notes__)
    assert took_s < 10
    assert left == [[n for n in range(1, 301) if not first <= n <= last]] * 2
    assert f"a file was passed over, events {first} to {last}: {path}" in caplog.text
    assert (status, problem["code"]) == (500, "T410")
    assert elsewhere == list(range(1, 301)), "what is broken where nobody looks hurts nobody"
    assert numbers(batch_reader(url, columns=columns)) == list(range(1, 301))


@pytest.mark.usefixtures("only_events")
def test_the_job_goes_on_without_a_damaged_file_of_a_broker_and_not_with_another_log(
    ready: SparkSession, trimmed_broker: Served, tmp_path: Path
) -> None:
    with damaged(trimmed_broker, 1):
        done = run(ready, Job(trimmed_broker.url, tmp_path))

    assert done.manifest.counts["missing"] == 100
    assert require(tmp_path).tables["events"].rows == 200
    with pytest.raises(BadPipelineOption, match="started over"):
        new_records(ready, trimmed_broker.url, 10_000, Window())


def test_a_file_that_a_broker_does_not_read_is_named_and_not_passed_over(
    trimmed_broker: Served, tmp_path: Path
) -> None:
    reader = batch_reader(trimmed_broker.url, bad_files="skip", retries=1)
    assert numbers(reader) == list(range(1, 301))
    path = Path(Catalog(trimmed_broker.directory / "archive").pieces()[1].path)
    shutil.move(path, tmp_path / "away")
    path.symlink_to(path)
    try:
        with pytest.raises(BrokerRefused, match=r"symbolic links \[T415\]") as caught:
            numbers(reader)
    finally:
        path.unlink()
        shutil.move(tmp_path / "away", path)

    assert str(path) in str(caught.value)


Answer = Callable[[BaseHTTPRequestHandler, int], None]


class Pretender:
    """Something at an address that answers as it is told, and counts how often it was asked."""

    def __init__(self, answer: Answer) -> None:
        asked = self.asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                answer(self, len(asked))

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    asked: list[str]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def give(
    handler: BaseHTTPRequestHandler,
    body: bytes,
    *,
    status: int = 200,
    kind: str = MEDIA_TYPE,
    first: int = 1,
    next_: int = 40,
    head: int = 40,
    cut: int | None = None,
) -> None:
    handler.send_response(status)
    handler.send_header("content-type", kind)
    handler.send_header("content-length", str(len(body)))
    for name, number in ((FIRST, first), (NEXT, next_), (HEAD, head)):
        handler.send_header(name, str(number))
    handler.end_headers()
    handler.wfile.write(body[:cut])


def stream_of(*batches: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def read_from(answer: Answer, *, retries: int = 2, **options: object) -> tuple[list[int], int]:
    pretender = Pretender(answer)
    try:
        reader = batch_reader(pretender.url, retries=retries, timeout_s=5, **options)
        return numbers(reader), len(pretender.asked)
    finally:
        pretender.close()


def test_an_answer_that_breaks_off_is_taken_up_after_the_last_event_that_came() -> None:
    whole = stream_of(*(batch_of(n, n + 9) for n in range(1, 41, 10)))
    rest = {f"after={n}": stream_of(batch_of(n + 1, 40)) for n in range(40)}

    def broken(handler: BaseHTTPRequestHandler, count: int) -> None:
        if count <= 2:  # how far it goes, twice: for the extent, and for the shares
            give(handler, whole)
        elif count == 3:
            give(handler, whole, cut=len(whole) * 3 // 5)
        elif count == 4:
            give(handler, b"busy", status=503, kind="text/plain")
        else:
            query = handler.path.partition("?")[2].split("&")[0]
            give(handler, rest[query])

    found, asked = read_from(broken)

    assert found == list(range(1, 41))
    assert asked == 5


def html(handler: BaseHTTPRequestHandler, count: int) -> None:
    give(handler, b"<html>", kind="text/html")


def not_found(handler: BaseHTTPRequestHandler, count: int) -> None:
    give(handler, b"nothing here", status=404, kind="text/plain")


def refuses(handler: BaseHTTPRequestHandler, count: int) -> None:
    body = b'{"detail": "no", "remedy": "Ask for less.", "code": "T201"}'
    give(handler, body, status=400, kind="application/problem+json")


def always_busy(handler: BaseHTTPRequestHandler, count: int) -> None:
    give(handler, b"", status=503)


def trimmed(handler: BaseHTTPRequestHandler, count: int) -> None:
    give(handler, stream_of(batch_of(21, 40)), first=1 if count <= 2 else 21)


def garbage(handler: BaseHTTPRequestHandler, count: int) -> None:
    give(handler, b"\xff" * 100)


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (html, NotArrow, "answers with text/html"),
        (not_found, NotArrow, "404"),
        (refuses, BrokerRefused, "Ask for less"),
        (always_busy, CannotReachBroker, "did not answer in 2 tries: it answered 503"),
        (trimmed, EventsGone, "events 1 to 20 are not in http"),
        (garbage, CannotReachBroker, "its answer broke off"),
    ],
)
def test_what_is_wrong_with_an_answer_is_said(
    answer: Answer, error: type[TocsinError], words: str
) -> None:
    with pytest.raises(error, match=words):
        read_from(answer, retries=1)


def test_a_hole_that_opens_while_a_broker_is_read_is_passed_over_when_asked() -> None:
    found, _ = read_from(trimmed, holes="skip")

    assert found == list(range(21, 41))


def holed(handler: BaseHTTPRequestHandler, count: int) -> None:
    """As a broker answers whose archive has 1 to 100 and whose log has 151 to 300."""
    query = numbers_asked(handler.path)
    archive = [Piece(1, 100, "archived", False, 1)]
    found = plan_read(archive, 150, 300, after=query["after"], limit=query["limit"])
    batches = [batch_of(found.first, found.through)] if query["limit"] else []
    body = stream_of(*batches)
    next_ = max(query["after"], found.through)
    give(handler, body, first=found.first, next_=next_, head=found.head)


def numbers_asked(path: str) -> dict[str, int]:
    """`after` and `limit` of a request."""
    return {name: int(value) for name, value in re.findall(r"(after|limit)=(\d+)", path)}


@pytest.mark.parametrize("rows", [1_000, 150, 100, 70, 30, 7])
def test_shares_on_either_side_of_a_hole_and_within_it_give_each_event_once(rows: int) -> None:
    pretender = Pretender(holed)
    try:
        reader = batch_reader(
            pretender.url, columns="seq,run", holes="skip", rows_per_partition=rows
        )
        shares = reader.partitions()
        found = [
            [seq for batch in reader.read(share) for seq in batch.column("seq").to_pylist()]
            for share in shares
        ]
    finally:
        pretender.close()

    together = sorted(seq for given in found for seq in given)
    assert together == [*range(1, 101), *range(151, 301)]
    for share, given in zip(shares, found, strict=True):
        assert all(share.after < seq <= share.through for seq in given)
    for asked in map(numbers_asked, pretender.asked):
        assert asked["after"] + asked["limit"] <= 300


def too_much(handler: BaseHTTPRequestHandler, count: int) -> None:
    give(handler, stream_of(batch_of(1, 40)))


def test_what_a_broker_gives_beyond_a_share_is_left_out() -> None:
    found, _ = read_from(too_much, through=25)

    assert found == list(range(1, 26))


def test_a_broker_that_is_not_there_is_said_to_be_away() -> None:
    with pytest.raises(CannotReachBroker, match=r"127.0.0.1:9 did not answer in 1 tries"):
        batch_reader("http://127.0.0.1:9", retries=0).partitions()
