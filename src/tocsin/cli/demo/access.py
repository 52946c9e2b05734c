"""Part: who may do what. A stranger is refused, a viewer gets what it may have, a right ends."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tocsin.cli.broker_process import BrokerProcess
from tocsin.cli.demo.context import DemoContext
from tocsin.client.transport.connection import Connection
from tocsin.errors import BrokerRefused, SomeFailed

SETTINGS: Final = {
    "TOCSIN_AUTH__MODE": "required",
    "TOCSIN_ARCHIVE__ENABLED": "false",  # no archive and no account of runs: fewer processes
    "TOCSIN_MONITOR__ENABLED": "false",
}
RULES: Final = (
    {"principal": "instrument", "action": "publish", "topic": "lab/**"},
    {"principal": "viewer", "action": "subscribe", "topic": "lab/*/public", "withheld": True},
)
TOPICS: Final = ("lab/laser/public", "lab/laser/raw", "lab/pump/public", "lab/pump/raw")


class Caller(NamedTuple):
    """Somebody, and what it signs in with."""

    url: str
    token: str = ""

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status, and the answer or the problem."""
        data = b"" if body is None else json.dumps(body).encode()
        kind = "application/cloudevents+json" if path == "/events" else "application/json"
        headers = [("Content-Type", kind)] if body is not None else []
        if self.token:
            headers.append(("Authorization", f"Bearer {self.token}"))
        answer = Connection(self.url).request(method, path, body=data, headers=headers)
        return answer.status, json.loads(answer.body) if answer.body else None

    def must(self, method: str, path: str, body: object = None) -> Any:
        status, answer = self.ask(method, path, body)
        if status >= 300:
            raise BrokerRefused(f"{method} {path}: {answer}", remedy="Please report this.")
        return answer


def run(demo: DemoContext) -> None:
    with _broker() as broker:
        secret = (broker.directory / "admin.token").read_text().strip()
        admin, stranger = Caller(broker.url, secret), Caller(broker.url)
        refused, problem = stranger.ask("POST", "/events", _event(0))
        demo.print(f"A stranger publishes: {refused}, {problem['detail']}.")
        for rule in RULES:
            admin.must("POST", "/access/rules", rule)
        instrument, viewer = (
            Caller(broker.url, _token(admin, name)["token"]) for name in ("instrument", "viewer")
        )
        box = viewer.must("POST", "/boxes", {"filters": [{"topic": "lab/**"}]})["id"]
        for number in range(len(TOPICS)):
            instrument.must("POST", "/events", _event(number))
        pulled = viewer.must("GET", f"/boxes/{box}/messages?max=10")
        got = [each["topic"] for each in pulled["events"]]
        demo.print(f"The instrument publishes on {', '.join(TOPICS)}.")
        withheld = viewer.must("GET", f"/boxes/{box}")["withheld"]
        demo.print(
            f"The viewer asked for lab/** and may have lab/*/public: {', '.join(got)}; "
            f"{withheld} were withheld."
        )
        why = admin.must("GET", "/access/check?principal=viewer&action=publish&topic=lab/pump/raw")
        demo.print(f"May the viewer publish? {'yes' if why['allowed'] else 'no'}: {why['reason']}.")
        [token] = [
            each
            for each in admin.must("GET", "/access/tokens")["tokens"]
            if each["principal"] == "viewer"
        ]
        admin.must("DELETE", f"/access/tokens/{token['id']}")
        after = viewer.ask("GET", f"/boxes/{box}/messages")[0]
        broker.kill()
        broker.start()
        later = viewer.ask("GET", f"/boxes/{box}/messages")[0]
        demo.print(
            f"Its token is revoked: {after}. The broker is killed and started: still {later}.\n"
            "`tocsin access why` says which rule decides, `tocsin access audit` what was decided."
        )
    result = {
        "stranger": refused,
        "viewer": got,
        "withheld": withheld,
        "revoked": after,
        "after_the_crash": later,
    }
    demo.results["access"] = result
    if result != EXPECTED:
        raise SomeFailed(f"rights did not hold: {result}", remedy="Please report this.")


EXPECTED: Final = {
    "stranger": 401,
    "viewer": ["lab/laser/public", "lab/pump/public"],
    "withheld": 2,
    "revoked": 401,
    "after_the_crash": 401,
}


@contextmanager
def _broker() -> Iterator[BrokerProcess]:
    with tempfile.TemporaryDirectory(prefix="tocsin-demo-") as directory:
        broker = BrokerProcess(Path(directory) / "secured", settings=SETTINGS)
        try:
            broker.start()
            yield broker
        finally:
            broker.stop()


def _token(admin: Caller, principal: str) -> Any:
    return admin.must("POST", "/access/tokens", {"principal": principal, "expires": "PT1H"})


def _event(number: int) -> dict[str, object]:
    return {
        "specversion": "1.0",
        "id": str(number),
        "source": "/demo/instrument",
        "type": "reading",
        "topic": TOPICS[number],
    }
