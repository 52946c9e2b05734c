"""Part: a sink refuses one event; it becomes a dead letter, and is redriven after a repair."""

from __future__ import annotations

from tocsin.cli.demo.context import DemoContext
from tocsin.client import Publisher
from tocsin.client.transport.http_listener import HttpAnswer, HttpListener
from tocsin.errors import SomeFailed


class RefusingWebhook(HttpListener):
    """A webhook that refuses one event until it is repaired."""

    def __init__(self) -> None:
        self.repaired = False
        self.taken: list[str] = []
        super().__init__("127.0.0.1", 0, self._handle)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def _handle(self, method: str, path: str, headers: dict[str, str], body: bytes) -> HttpAnswer:
        if headers["ce-id"] == "picky-2" and not self.repaired:
            return HttpAnswer(422, b"cannot read this")
        self.taken.append(headers["ce-id"])
        return HttpAnswer(204)


def run(demo: DemoContext) -> None:
    with RefusingWebhook() as sink:
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
    demo.request("DELETE", f"/subscriptions/{subscription['id']}")
    demo.results["refusal"] = {"taken": sink.taken, "dead_letters_left": len(left)}
    if sink.taken != ["picky-1", "picky-3", "picky-2"] or left:
        raise SomeFailed("the dead letter was not redriven", remedy="Please report this.")
    demo.print("The webhook is repaired, the dead letter redriven: it arrived, and left the list.")
