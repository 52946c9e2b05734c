"""What can be asked of the certificates of clients, and what cannot."""

from __future__ import annotations

import contextlib
import json
import os
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from certificate_clients import soap_tcp

from served import ROOT
from tls_site import Client, Refused, Site, connect
from tocsin.access.session import anonymous
from tocsin.drivers.tls.site_context import certificate_session
from waiting import wait_until

# Settings


def test_required_certificates_are_required_to_connect(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with site.broker(CERTIFICATES__CLIENT_CERTIFICATES="required") as broker:
        with pytest.raises(Refused), Client(broker, site.context()) as client:
            client.call("GET", "/livez")
        with contextlib.suppress(Refused):
            assert soap_tcp(broker, site.context(), b"x") == b""
        with Client(broker, site.context(site.issue("alice"))) as client:
            assert client.publish()[0] == 202


def refused_start(tmp_path: Path, **settings: str) -> str:
    site = Site(tmp_path)
    with pytest.raises(AssertionError) as caught, site.broker(**settings):
        pass
    return str(caught.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"CERTIFICATES__CLIENT_CA": "none.pem"}, "none.pem, cannot be read"),
        ({"CERTIFICATES__CRL_FILE": "none.crl"}, "none.crl, cannot be read"),
        ({"CERTIFICATES__CLIENT_CA": ""}, "certificates.client_ca is not set"),
        ({"CERTIFICATES__CLIENT_CERTIFICATES": "sometimes"}, "optional, required"),
        ({"DELIVERY__CLIENT_CERTIFICATE": "x.pem"}, "delivery.client_key is not set"),
        ({"DELIVERY__CLIENT_KEY": "x.key"}, "delivery.client_certificate is not set"),
        ({"OVERLAY__CLIENT_KEY": "x.key"}, "overlay.client_certificate is not set"),
        ({"HTTP__TLS_KEY": "", "HTTP__TLS_CERTIFICATE": ""}, "do not speak TLS"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, settings: dict[str, str], said: str) -> None:
    if "HTTP__TLS_KEY" in settings:
        from tocsin.config import load
        from tocsin.drivers.broker_tls import broker_tls
        from tocsin.errors import BadSetting

        given = {"certificates.client_ca": str(Site(tmp_path).ca)}
        with pytest.raises(BadSetting, match=said):
            broker_tls(load(given, {})[0])
        return
    assert said in refused_start(tmp_path, **settings)


def test_a_key_that_others_can_read_stops_the_start(tmp_path: Path) -> None:
    site = Site(tmp_path)
    Path(site.host[1]).chmod(0o644)

    said = r"can be read or changed by others .* \[T220\]"
    with pytest.raises(AssertionError, match=said), site.broker():
        pass


def test_without_tls_a_session_is_as_it_was() -> None:
    session = anonymous("http", "192.0.2.1:5")

    assert certificate_session(session, None) is session


def test_a_service_of_message_boxes_alone_knows_its_clients_too(tmp_path: Path) -> None:
    site = Site(tmp_path)
    olga = site.context(site.issue("olga", units=("operators",)))
    revoked = site.last
    command = [sys.executable, "-m", "tocsin", "box", "serve", "--json", *site.flags()]
    command += ["--data", str(tmp_path / "boxes"), "--http", "127.0.0.1:0"]
    create = b"""<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>
        <c:CreatePullPoint xmlns:c="http://docs.oasis-open.org/wsn/b-2"/></s:Body></s:Envelope>"""

    def create_box(context: ssl.SSLContext) -> bytes:
        with connect(address, context) as opened:
            head = b"POST /soap HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\n"
            opened.sendall(head + b"Content-Length: %d\r\n\r\n" % len(create) + create)
            return opened.recv(1 << 16).split(b"\r\n")[0]

    environment = {**os.environ, **site.environment()}
    running = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=ROOT)
    try:
        assert running.stdout is not None
        address = json.loads(running.stdout.readline())["http"]
        assert create_box(olga) == b"HTTP/1.1 200 OK"
        assert create_box(site.context()) != b"HTTP/1.1 200 OK"
        site.revoke(revoked)
        wait_until(lambda: b"200" not in create_box(olga), "it is revoked")
    finally:
        running.terminate()
        assert running.wait(20) == 0
        assert running.stdout is not None
        running.stdout.close()
