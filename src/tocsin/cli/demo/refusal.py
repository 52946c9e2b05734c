"""Scene: a sink says no to one event; it becomes a dead letter, and is redriven when mended."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tocsin.cli.demo.stage import Stage
from tocsin.client import Publisher
from tocsin.errors import SomeFailed


class Picky(ThreadingHTTPServer):
    """A webhook that cannot read one event, until somebody mends it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Hook)
        self.mended = False
        self.taken: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook"


class _Hook(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Picky

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", "0")))
        event = str(self.headers["ce-id"])
        if event == "picky-2" and not self.server.mended:
            self.send_error(422, "cannot read this")
            return
        self.server.taken.append(event)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the demo tells the story."""


def play(stage: Stage) -> None:
    with Picky() as sink:
        threading.Thread(target=sink.serve_forever, daemon=True).start()
        subscription = stage.ask(
            "POST", "/subscriptions", {"sink": sink.url, "filters": [{"topic": "demo/picky"}]}
        )
        with Publisher(stage.url) as publisher:
            for number in (1, 2, 3):
                publisher.publish("demo/picky", {"number": number}, id=f"picky-{number}")
        stage.until(lambda: len(sink.taken) == 2, "delivery of the other two")
        where = f"/deadletters?subscription={subscription['id']}"
        stage.until(lambda: bool(stage.ask("GET", where)["deadletters"]), "the dead letter")
        letter = stage.ask("GET", where)["deadletters"][0]
        stage.say(f"Events 1 and 3 were taken. Event 2 is a dead letter: {letter['reason']}")
        sink.mended = True
        stage.ask("POST", f"/deadletters/{letter['id']}/redrive")
        left = stage.ask("GET", where)["deadletters"]
        sink.shutdown()
    stage.ask("DELETE", f"/subscriptions/{subscription['id']}")
    stage.results["refusal"] = {"taken": sink.taken, "dead_letters_left": len(left)}
    if sink.taken != ["picky-1", "picky-3", "picky-2"] or left:
        raise SomeFailed("the dead letter was not redriven", remedy="Please report this.")
    stage.say("The webhook is repaired, the dead letter redriven: it arrived, and left the list.")
