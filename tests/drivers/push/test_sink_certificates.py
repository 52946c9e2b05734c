"""Sinks that ask for a certificate get the broker's own, also after it was exchanged."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Empty, Queue

import pytest

from pki import BROKER
from served import Served
from tls_site import Client, Site

RULES = """
[[access]]
principal = "olga"
action = "*"

[[access]]
principal = "pusher"
action = "publish"
topic = "gma/**"
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path)
    made.config.write_text(RULES)
    return made


@pytest.fixture
def hook(site: Site) -> Iterator[tuple[str, Queue[tuple[str, bytes]]]]:
    """A webhook that takes nothing from who shows no certificate of the site."""
    got: Queue[tuple[str, bytes]] = Queue()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            shown = self.connection.getpeercert()  # type: ignore[attr-defined]
            subject = dict(each[0] for each in shown["subject"])
            body = self.rfile.read(int(self.headers["content-length"]))
            got.put((subject["commonName"], body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*site.issue("hook", usages=BROKER, hosts=("localhost",)))
    context.load_verify_locations(cadata=site.authority.pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://localhost:{server.server_port}/hook", got
    server.shutdown()
    server.server_close()


def pusher(site: Site, **settings: str) -> dict[str, str]:
    files = site.issue("pusher")
    return {
        "DELIVERY__CA_FILE": str(site.ca),
        "DELIVERY__CLIENT_CERTIFICATE": files[0],
        "DELIVERY__CLIENT_KEY": files[1],
        **settings,
    }


def subscribe(broker: Served, site: Site, sink: str, topic: str) -> None:
    with Client(broker, site.context(site.issue("olga"))) as client:
        asked = {"sink": sink, "filters": [{"topic": topic}]}
        status, answer = client.call("POST", "/subscriptions", asked)
        assert status == 201, answer


def publish(broker: Served, site: Site, topic: str, id: str) -> None:
    with Client(broker, site.context(site.issue("olga"))) as client:
        assert client.publish(topic, id)[0] == 202


def test_a_webhook_sees_the_broker_s_certificate(
    site: Site, hook: tuple[str, Queue[tuple[str, bytes]]]
) -> None:
    address, got = hook
    with site.broker(**pusher(site)) as broker:
        subscribe(broker, site, address, "lab/**")

        publish(broker, site, "lab/x", "e1")

        assert got.get(timeout=20)[0] == "pusher"


def test_without_one_nothing_is_delivered_to_it(
    site: Site, hook: tuple[str, Queue[tuple[str, bytes]]]
) -> None:
    address, got = hook
    with site.broker(DELIVERY__CA_FILE=str(site.ca)) as broker:
        subscribe(broker, site, address, "lab/**")
        publish(broker, site, "lab/x", "e1")

        with pytest.raises(Empty):
            got.get(timeout=1.5)


def test_another_broker_knows_who_pushes_performance_events(site: Site) -> None:
    with site.broker() as there, site.broker(**pusher(site)) as here:
        port = there.frames.rpartition(":")[2]
        subscribe(here, site, f"gmas://localhost:{port}", "gma/**")

        publish(here, site, "gma/Load/x", "e1")
        publish(here, site, "gma/Load/x", "e2")

        def stored() -> str:
            with Client(there, site.context(site.issue("olga"))) as client:
                return json.dumps(client.call("GET", "/events?after=0&limit=10")[1])

        for _ in range(200):
            if "gma/" in stored():
                break
            threading.Event().wait(0.05)
        assert "gma/" in stored(), here.said()
