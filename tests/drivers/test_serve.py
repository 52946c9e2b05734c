"""A broker as an operator meets it: one process, real disk, real signals."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import apsw
import pytest

from served import ROOT, Served, served
from small_disk import small_disk
from tocsin.store.directory import LOG_NAME


def stream(broker: Served, path: str) -> socket.socket:
    host, _, port = broker.address.rpartition(":")
    opened = socket.create_connection((host, int(port)), timeout=10)
    opened.sendall(f"GET {path} HTTP/1.1\r\nHost: {broker.address}\r\n\r\n".encode())
    return opened


def read_until(opened: socket.socket, wanted: bytes) -> bytes:
    got = b""
    while wanted not in got:
        data = opened.recv(65536)
        assert data, f"closed before {wanted!r}: {got!r}"
        got += data
    return got


def test_sigterm_ends_it_cleanly_within_a_second_also_with_streams_and_pulls_open() -> None:
    with served() as broker:
        _, box = broker.call("POST", "/boxes", {})
        streams = [stream(broker, "/events/stream") for _ in range(20)]
        streams += [stream(broker, f"/boxes/{box['id']}/messages?wait=30") for _ in range(5)]
        for opened in streams[:20]:
            read_until(opened, b"retry:")
        time.sleep(0.1)
        started = time.monotonic()

        code = broker.stop()
        took_s = time.monotonic() - started

        for opened in streams[:20]:
            assert b"event: bye" in read_until(opened, b"bye")
        for opened in streams:
            opened.close()
        assert code == 0, broker.said()
        assert took_s < 1.0


def test_what_was_acknowledged_is_there_after_a_clean_stop_and_a_start() -> None:
    with served() as broker:
        broker.publish({"topic": "a"}, {"topic": "b"})
        broker.stop()
        broker.start()

        status, page = broker.call("GET", "/events?after=0")

        assert status == 200
        assert [event["topic"] for event in page["events"]] == ["a", "b"]


def test_a_second_broker_on_the_same_data_is_refused_and_told_who_has_it() -> None:
    with served() as broker:
        command = [sys.executable, "-m", "tocsin", "serve", "--http", "127.0.0.1:0"]
        second = subprocess.run(
            [*command, "--data", str(broker.directory)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=30,
            check=False,
        )

        assert second.returncode == 1
        assert "T401" in second.stderr
        assert str(broker.pid) in second.stderr


def test_a_port_in_use_is_a_clear_error() -> None:
    with served() as broker, tempfile.TemporaryDirectory() as other:
        command = [sys.executable, "-m", "tocsin", "serve", "--http", broker.address]
        second = subprocess.run(
            [*command, "--data", other],
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=30,
            check=False,
        )

        assert second.returncode in (1, 2)
        assert "Traceback" not in second.stderr
        assert f"cannot listen on {broker.address}: address already in use [T001]" in second.stderr


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_an_fsync_error_acknowledges_nothing_and_stops_the_broker_with_a_clear_word() -> None:
    with served() as broker:
        broker.publish({"id": "before", "topic": "a"})
        inject = "inject=fsync,fdatasync:error=EIO"
        tracer = subprocess.Popen(
            ["strace", "-f", "-qq", "-o", "/dev/null", "-e", inject, "-p", str(broker.pid)],
            stderr=subprocess.PIPE,
        )
        try:
            _wait_for_tracer(broker.pid, tracer)
            event = {"specversion": "1.0", "id": "lost?", "source": "/t", "type": "t"}
            kind = {"content-type": "application/cloudevents+json"}
            status, problem = broker.call("POST", "/events", event, kind)
            code = broker.process.wait(20)
        finally:
            tracer.terminate()
            tracer.wait()

        assert status == 503
        assert problem["code"] == "T404"
        assert code == 1
        assert "T404" in broker.said()
        broker.start()
        _, page = broker.call("GET", "/events?after=0")
        assert "before" in [event["id"] for event in page["events"]]


def _wait_for_tracer(pid: int, tracer: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        threads = Path(f"/proc/{pid}/task").iterdir()
        if all("TracerPid:\t0" not in (t / "status").read_text() for t in threads):
            return
        if tracer.poll() is not None:
            pytest.skip(f"strace may not trace here: {tracer.stderr and tracer.stderr.read()!r}")
        time.sleep(0.05)
    pytest.skip("strace did not attach")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to mount a small file system")
def test_a_full_disk_is_told_and_loses_nothing_and_room_makes_it_work_again() -> None:
    with small_disk(12) as place:
        filler = place / "filler"
        filler.write_bytes(b"x" * (3 << 20))
        broker = Served(place / "data", env={"TOCSIN_LOG__FREE_BYTES_MIN": "1"})
        try:
            acknowledged, refusal = _publish_until_refused(broker)
            assert refusal[0] == 507
            assert refusal[1]["code"] == "T403"
            assert broker.call("GET", "/livez")[0] == 200

            filler.unlink()
            time.sleep(1.1)
            broker.publish({"id": "again"})
            broker.kill()
            broker.start()

            assert _ids(broker) >= {*acknowledged, "again"}
        finally:
            broker.process.kill()
            broker.process.wait()


def _publish_until_refused(broker: Served) -> tuple[list[str], tuple[int, dict[str, object]]]:
    kind = {"content-type": "application/cloudevents+json"}
    acknowledged: list[str] = []
    for number in range(2000):
        event = {
            "specversion": "1.0",
            "id": str(number),
            "source": "/full",
            "type": "t",
            "data": "x" * 60_000,
        }
        status, answer = broker.call("POST", "/events", event, kind)
        if status != 202:
            return acknowledged, (status, answer)
        acknowledged.append(str(number))
    raise AssertionError("the disk never filled")


def _ids(broker: Served) -> set[str]:
    ids: set[str] = set()
    after = 0
    while True:
        _, page = broker.call("GET", f"/events?after={after}&limit=100")
        ids |= {event["id"] for event in page["events"]}
        if page["next"] == after:
            return ids
        after = page["next"]


def test_a_corrupt_record_is_named_and_never_served() -> None:
    with served() as broker:
        broker.publish(*({"id": f"e{n}", "data": "y" * 200} for n in range(5)))
        broker.stop()
        spoil(broker.directory, 3)
        broker.start()

        status, page = broker.call("GET", "/events?after=0")

        assert status == 200
        assert [event["id"] for event in page["events"]] == ["e0", "e1", "e3", "e4"]
        assert page["corrupt"] == [3]


def test_a_corrupt_record_is_told_once_however_it_was_met() -> None:
    with served() as broker:
        broker.publish(*({"id": f"e{n}", "data": "y" * 200} for n in range(5)))
        broker.stop()
        spoil(broker.directory, 3)
        broker.start()

        broker.call("GET", "/events?after=0")
        assert b"tocsin_records_corrupt_total 1.0" in figures(broker)
        broker.call("GET", "/events?after=0")
        read_until(stream(broker, "/events/stream?after=0"), b'"e4"')

        assert b"tocsin_records_corrupt_total 1.0" in figures(broker)
        assert broker.said().count("failed their checksum") == 1


def figures(broker: Served) -> bytes:
    return read_until(stream(broker, "/metrics"), b"tocsin_subscription_behind{")


def spoil(directory: Path, seq: int) -> None:
    """Damage a record with `yyyy` in it, as a bad disk would."""
    connection = apsw.Connection(str(directory / LOG_NAME))
    connection.execute(
        "UPDATE events SET record = CAST(replace(record, 'yyyy', 'yyyz') AS BLOB) WHERE seq = ?",
        (seq,),
    )
    connection.close()


def test_interrupting_it_is_a_clean_stop_too() -> None:
    with served() as broker:
        broker.process.send_signal(signal.SIGINT)

        assert broker.process.wait(10) in (0, 130)
        assert "Traceback" not in broker.said()


def test_a_stream_that_broke_before_its_first_event_can_go_on_where_it_was() -> None:
    with served() as broker:
        broker.publish({"id": "before"})
        opened = stream(broker, "/events/stream")
        head = read_until(opened, b"id: ")
        head += opened.recv(100) if head.endswith(b"id: ") else b""
        place = head.rpartition(b"id: ")[2].split(b"\n")[0].decode()
        broker.kill()
        broker.start()
        broker.publish({"id": "meanwhile"})

        again = stream(broker, f"/events/stream?after={place}")

        assert b"meanwhile" in read_until(again, b"data: {")
        opened.close()
        again.close()


def test_sinks_that_hang_cannot_use_up_the_descriptors_that_publishers_come_in_by() -> None:
    program = (
        "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (100, 200));"
        "from tocsin.config import Settings; from tocsin.drivers.serve import within_descriptors;"
        "sinks = within_descriptors(Settings()).delivery.sinks_open_max;"
        "print(sinks, r.getrlimit(r.RLIMIT_NOFILE)[0])"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert ran.stdout.split() == ["100", "200"]


def test_the_start_says_how_many_clients_the_open_files_leave_room_for() -> None:
    program = (
        "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (500, 1000));"
        "from tocsin.config import Settings; from tocsin.drivers.logger import Logger; import sys;"
        "from tocsin.drivers.serve import note_room, within_descriptors;"
        "settings = within_descriptors(Settings()); note_room(settings, Logger(stream=sys.stdout));"
        "print(settings.soap_tcp.connections_max, settings.pegasus.connections_max);"
        "print(settings.overlay.links_max)"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    room = "http_connections=250 http_streams=200 frames_connections=150 open_files=1000"
    assert room in ran.stdout
    assert ran.stdout.splitlines()[-2:] == ["40 20", "20"]


def test_a_client_that_was_refused_and_stays_does_not_disturb_the_stop() -> None:
    with served() as broker:
        host, _, port = broker.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10) as client:
            client.sendall(b"this is no HTTP\r\n\r\n")
            assert client.recv(4096).startswith(b"HTTP/1.1 400")
            assert broker.stop() == 0

        assert "Traceback" not in broker.said()
        assert "RuntimeError" not in broker.said()
