"""Part: a sink refuses one event; it becomes a dead letter, and is redriven after a repair."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tocsin.cli.demo.context import DemoContext
from tocsin.client import Publisher
from tocsin.errors import SomeFailed


class RefusingWebhook(ThreadingHTTPServer):
    """A webhook that refuses one event until it is repaired."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repaired = False
        self.taken: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: RefusingWebhook

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", "0")))
        event = str(self.headers["ce-id"])
        if event == "picky-2" and not self.server.repaired:
            self.send_error(422, "cannot read this")
            return
        self.server.taken.append(event)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """No access log."""


def run(demo: DemoContext) -> None:
    with RefusingWebhook() as sink:
        threading.Thread(target=sink.serve_forever, daemon=True).start()
        subscription = demo.request(
            "POST", "/subscriptions", {"sink": sink.url, "filters": [{"topic": "demo/picky"}]}
        )
        with Publisher(demo.url) as publisher:
            for number in (1, 2, 3):
                publisher.publish("demo/picky", {"number": number}, id=f"picky-{number}")
        demo.until(lambda: len(sink.taken) == 2, "delivery of the other two")
        where = f"/deadletters?subscription={subscription['id']}"
        demo.until(lambda: bool(demo.request("GET", where)["deadletters"]), "the dead letter")
        letter = demo.request("GET", where)["deadletters"][0]
        demo.print(f"Events 1 and 3 were taken. Event 2 is a dead letter: {letter['reason']}")
        sink.repaired = True
        demo.request("POST", f"/deadletters/{letter['id']}/redrive")
        left = demo.request("GET", where)["deadletters"]
        sink.shutdown()
    demo.request("DELETE", f"/subscriptions/{subscription['id']}")
    demo.results["refusal"] = {"taken": sink.taken, "dead_letters_left": len(left)}
    if sink.taken != ["picky-1", "picky-3", "picky-2"] or left:
        raise SomeFailed("the dead letter was not redriven", remedy="Please report this.")
    demo.print("The webhook is repaired, the dead letter redriven: it arrived, and left the list.")
