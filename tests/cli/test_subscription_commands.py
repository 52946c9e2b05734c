"""`tocsin subs` and `tocsin dlq` against a real broker and a real sink."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from waiting import wait_until


class Sink:
    """A webhook that refuses until it is told otherwise."""

    def __init__(self) -> None:
        self.status = 400
        self.bodies: list[bytes] = []
        sink = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                sink.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(sink.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def sink():
    made = Sink()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_subscription_from_its_making_to_its_end(broker, tocsin, topic, sink) -> None:
    sink.status = 204
    code, out, _ = tocsin("subs", "add", sink.url, "--topic", topic, "--expires", "1h")
    assert code == 0
    name = out.strip()

    broker.publish({"topic": topic, "data": 1})
    wait_until(lambda: sink.bodies == [b"1"])

    assert name in tocsin("subs", "ls")[1]
    assert topic in tocsin("subs", "show", name)[1]
    assert tocsin("subs", "pause", name)[0] == 0
    assert json.loads(tocsin("subs", "show", name, "--json")[1])["state"] == "paused"
    assert tocsin("subs", "resume", name)[0] == 0
    renewed = json.loads(tocsin("subs", "renew", name, "--expires", "never", "--json")[1])
    assert renewed["expires"] is None
    assert tocsin("subs", "rm", name)[0] == 0
    assert tocsin("subs", "show", name)[0] == 5


def test_many_subscriptions_are_removed_by_what_they_have_in_common(tocsin, topic, sink) -> None:
    names = {
        tocsin("subs", "add", sink.url, "--topic", f"{topic}/{number}")[1].strip()
        for number in range(3)
    }

    assert tocsin("subs", "rm")[0] == 2
    assert tocsin("subs", "rm", "--filter", topic)[0] == 2, "a script must say --yes"
    code, out, _ = tocsin("subs", "rm", "--filter", topic, "--dry-run")
    assert code == 0
    assert set(out.split()) == names
    code, out, _ = tocsin("subs", "rm", *names, "nobody", "--json")
    assert code == 7
    assert sum(json.loads(line)["done"] for line in out.splitlines()) == 3


def test_a_sink_that_may_not_be_is_exit_code_four(tocsin) -> None:
    code, _, err = tocsin("subs", "add", "http://127.0.0.1:25/")

    assert code == 4
    assert "[T307]" in err


def test_dead_letters_are_seen_sent_again_and_dropped(broker, tocsin, topic, sink) -> None:
    name = tocsin("subs", "add", sink.url, "--topic", topic)[1].strip()
    broker.publish({"topic": topic, "data": "one"}, {"topic": topic, "data": "two"})

    def letters() -> list[dict]:
        out = tocsin("dlq", "ls", "--subscription", name, "--json")[1]
        return [json.loads(line) for line in out.splitlines()]

    wait_until(lambda: len(letters()) == 2)
    first = letters()[0]["id"]
    assert "HTTP 400" in tocsin("dlq", "show", first)[1]
    assert "dead letters: " in tocsin("doctor")[1]
    assert tocsin("dlq", "redrive", first)[0] == 1
    assert tocsin("dlq", "redrive", "--subscription", name)[0] == 7

    sink.status = 204
    assert tocsin("dlq", "redrive", first)[0] == 0
    assert tocsin("dlq", "drop", "--subscription", name)[0] == 2, "a script must say --yes"
    assert tocsin("dlq", "drop", "--subscription", name, "--yes")[0] == 0
    assert letters() == []
    assert tocsin("dlq", "show", first)[0] == 5
    tocsin("subs", "rm", name)


def test_dead_letters_are_sent_again_in_the_order_of_their_events(
    broker, tocsin, topic, sink
) -> None:
    name = tocsin("subs", "add", sink.url, "--topic", topic)[1].strip()
    broker.publish(*({"topic": topic, "data": number} for number in range(20)))

    def listed() -> list[int]:
        out = tocsin("dlq", "ls", "--subscription", name, "--json")[1]
        return [json.loads(line)["sequence"] for line in out.splitlines()]

    wait_until(lambda: len(listed()) == 20)
    assert listed() == sorted(listed())

    sink.status = 204
    sink.bodies.clear()
    assert tocsin("dlq", "redrive", "--subscription", name, "--rate", "10000")[0] == 0
    assert sink.bodies == [str(number).encode() for number in range(20)]
    tocsin("subs", "rm", name)


def test_a_signed_batched_subscription_can_be_made(broker, tocsin, topic, sink, tmp_path) -> None:
    sink.status = 204
    secret = tmp_path / "secret"
    secret.write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")

    code, out, err = tocsin(
        "subs", "add", sink.url, "--topic", topic, "--batch", "10", "--secret-file", str(secret)
    )

    assert code == 0, err
    shown = json.loads(tocsin("subs", "show", out.strip(), "--json")[1])
    assert shown["config"]["batch"] == 10
    assert "MfKQ9r8" not in json.dumps(shown)
    tocsin("subs", "rm", out.strip())
