"""A producer in a directory: renewed in few words, through whatever happens to the directory."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from gma_peers import proxied

from served import Served, served
from tocsin.client.gma import Producer
from tocsin.errors import BadSetting
from waiting import wait_until

ENTRY = {
    "id": "d1", "kind": "producer", "name": "n", "host": "h", "address": None, "events": [],
    "attributes": {}, "lease": "PT10S", "registered": "2026-01-01T00:00:00Z", "expires": None,
}  # fmt: skip
LAPSED = 404, {"code": "T311", "title": "gone", "detail": "there is no entry d1", "remedy": "x"}


class FakeDirectory:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.answers: dict[str, tuple[int, Any]] = {}
        self.hangs = threading.Event()
        directory = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or b"null")
                directory.asked.append((self.command, self.path, body))
                if directory.hangs.is_set():
                    time.sleep(20)
                status, said = directory.answers.get(self.command, (200, ENTRY))
                data = said if isinstance(said, bytes) else json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_PUT = do_DELETE = answer

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def written(self) -> list[Any]:
        return [body for method, _, body in self.asked if method == "POST"]

    def methods(self) -> list[str]:
        return [method for method, _, _ in self.asked]


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDirectory]:
    monkeypatch.setattr("tocsin.client.gma.registration.RENEW_AT", 0.005)
    found = FakeDirectory()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.client.gma.registration.RENEW_AT", 0.02)


@pytest.fixture(scope="module")
def own_broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def name() -> str:
    return f"test{os.urandom(6).hex()}"


def entries(broker: Served, name: str) -> list[dict[str, Any]]:
    status, answer = broker.call("GET", "/directory?kind=producer")
    assert status == 200, answer
    return [each for each in answer["entries"] if each["name"] == name]


def test_the_entry_is_written_once_renewed_and_withdrawn(directory: FakeDirectory) -> None:
    with Producer() as producer:
        producer.offer("Load", lambda _: {})
        producer.register(directory.url, lease_s=10)
        wait_until(lambda: len(directory.asked) >= 4)

    (post, where, entry), renewals, last = (
        directory.asked[0], directory.asked[1:-1], directory.asked[-1],
    )  # fmt: skip
    assert (post, where, entry["lease"]) == ("POST", "/directory", 10)
    assert [each["name"] for each in entry["events"]] == ["Load"]
    assert all(each == ("PUT", "/directory/d1", {}) for each in renewals)
    assert last[:2] == ("DELETE", "/directory/d1")


def test_an_address_of_this_machine_is_reported_to_directories_on_it_alone(
    directory: FakeDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Producer(host="node7") as near:
        near.register(directory.url)
    monkeypatch.setattr("tocsin.client.gma.producer.is_loopback", lambda host: False)
    with Producer(host="node7") as far:
        far.register(directory.url, name="far")
    with Producer("0.0.0.0:0", host="node7") as open_to_all:
        open_to_all.register(directory.url)
        port = str(open_to_all.address).rpartition(":")[2]

    reported = [each.get("address") for each in directory.written()]
    assert reported == [f"gma://{near.address}", None, f"gma://node7:{port}"]


def test_what_is_offered_later_is_written_too(directory: FakeDirectory) -> None:
    with Producer() as producer:
        producer.register(directory.url, lease_s=10)
        producer.offer("Late", lambda _: {})
        wait_until(lambda: directory.methods().count("POST") == 2)

    second = [body for method, _, body in directory.asked if method == "POST"][1]
    assert [each["name"] for each in second["events"]] == ["Late"]


def test_an_entry_that_has_lapsed_is_written_again(
    directory: FakeDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    directory.answers["PUT"] = LAPSED
    with Producer() as producer:
        producer.register(directory.url, lease_s=10)
        wait_until(lambda: directory.methods()[:3] == ["POST", "PUT", "POST"])
        assert producer.registration_error is None

    assert "could not register" not in caplog.text


def test_a_directory_that_refuses_the_entry_is_not_asked_over_and_over(
    directory: FakeDirectory,
) -> None:
    bad = {"code": "T312", "title": "bad", "detail": "the name is too long", "remedy": "Cut it."}
    directory.answers["POST"] = 400, bad
    with Producer() as producer:
        producer.register(directory.url, lease_s=10)
        assert "the name is too long" in (producer.registration_error or "")
        time.sleep(0.6)

    assert directory.methods() == ["POST"]


@pytest.mark.parametrize(
    "answer",
    [(503, {"code": "T208", "detail": "it stops"}), (200, b"<html>"), (200, []), (429, b"")],
)
def test_a_directory_that_cannot_now_is_asked_again(
    directory: FakeDirectory, answer: tuple[int, Any]
) -> None:
    directory.answers["POST"] = answer
    with Producer() as producer:
        producer.register(directory.url, lease_s=10)
        assert producer.registration_error is not None
        wait_until(lambda: len(directory.asked) >= 3)
        directory.answers.clear()
        wait_until(lambda: producer.registration_error is None)


def test_an_error_of_any_kind_is_reported_and_tried_again(
    directory: FakeDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    attributes: dict[str, Any] = {"odd": object()}
    with Producer() as producer:
        producer.register(directory.url, lease_s=10, attributes=attributes)
        assert "TypeError" in (producer.registration_error or "")
        assert "not JSON serializable" in caplog.text
        wait_until(lambda: producer._registrations[0]._attempt >= 2)


def test_a_directory_that_hangs_does_not_keep_a_producer_from_closing(
    directory: FakeDirectory,
) -> None:
    producer = Producer()
    producer.register(directory.url, lease_s=10)
    directory.hangs.set()
    before = len(directory.asked)
    wait_until(lambda: len(directory.asked) > before)
    began_s = time.monotonic()
    producer.close(timeout_s=0.5)

    assert time.monotonic() - began_s < 1.5


@pytest.mark.parametrize("lease_s", [9.9, 7 * 86_400 + 1, 0, -1, float("nan")])
def test_a_lease_has_its_limits(lease_s: float) -> None:
    with Producer() as producer, pytest.raises(BadSetting, match="lease_s"):
        producer.register("http://127.0.0.1:1", lease_s=lease_s)


@pytest.mark.usefixtures("quick")
def test_a_broker_that_closes_an_idle_connection_costs_no_renewal(
    own_broker: Served, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with proxied(own_broker.address) as proxy, Producer() as producer:
        producer.register(f"http://{proxy.address}", name=name, lease_s=40)
        for _ in range(4):
            wait_until(lambda: proxy.idle_s() > 0.2)  # a renewal under way is allowed to fail
            [before] = entries(own_broker, name)
            proxy.cut()
            wait_until(lambda: entries(own_broker, name)[0]["expires"] > before["expires"])  # noqa: B023
        assert producer.registration_error is None

    assert "could not register" not in caplog.text


@pytest.mark.usefixtures("quick")
def test_a_broker_that_is_started_again_or_loses_the_entry_has_it_again(
    own_broker: Served, name: str
) -> None:
    with Producer() as producer:
        producer.register(own_broker.url, name=name, lease_s=10)
        own_broker.kill()
        wait_until(lambda: producer.registration_error is not None)
        own_broker.start()
        wait_until(lambda: producer.registration_error is None)
        [entry] = entries(own_broker, name)

        assert own_broker.call("DELETE", f"/directory/{entry['id']}")[0] in (200, 204)
        wait_until(lambda: entries(own_broker, name))

    assert entries(own_broker, name) == []


def test_a_producer_is_in_so_many_directories(directory: FakeDirectory) -> None:
    with Producer() as producer:
        for _ in range(10):
            producer.register(directory.url)
        with pytest.raises(BadSetting, match="10 directories"):
            producer.register(directory.url)
