"""Certificates of clients at every listener with TLS: who is signed in, who is not, and for how
long."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from pki import DAY, NOW, authority
from served import ROOT, Served
from tls_site import Client, Refused, Site, connect
from tocsin.access.session import anonymous
from tocsin.drivers.tls.site_context import certificate_session
from tocsin.wire.dime import Decoder, envelope_message


def until(holds: Callable[[], Any], said: str = "") -> Any:
    deadline_s = time.monotonic() + 15.0
    while not (found := holds()):
        assert time.monotonic() < deadline_s, said
        time.sleep(0.02)
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def broker(site: Site) -> Iterator[Served]:
    with site.broker("--pegasus", "127.0.0.1:0") as running:
        yield running
        assert "Traceback" not in running.said()


@pytest.fixture(scope="module")
def alice(site: Site) -> ssl.SSLContext:
    return site.context(site.issue("alice"))


@pytest.fixture(scope="module")
def operator(site: Site) -> ssl.SSLContext:
    return site.context(site.issue("olga", units=("operators",)))


# HTTP


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(65537, 2048),
        ec.generate_private_key(ec.SECP256R1()),
        ed25519.Ed25519PrivateKey.generate(),
    ],
    ids=["rsa", "p-256", "ed25519"],
)
def test_a_certificate_signs_in_and_the_rules_of_its_name_hold(
    site: Site, broker: Served, key: Any
) -> None:
    with Client(broker, site.context(site.issue("keyed", "alice", key=key))) as client:
        status, who = client.call("GET", "/access/whoami")
        assert (status, who["principal"], who["credential"]) == (200, "alice", "certificate")
        assert client.publish("lab/x")[0] == 202
        status, problem = client.publish("elsewhere")
        assert (status, problem["code"]) == (403, "T215")


def test_units_are_groups(broker: Served, operator: ssl.SSLContext) -> None:
    with Client(broker, operator) as client:
        assert client.call("GET", "/access/whoami")[1]["groups"] == ["operators"]
        assert client.publish("anything/at/all")[0] == 202


def test_without_a_certificate_nothing_is_allowed_that_needs_one(
    site: Site, broker: Served
) -> None:
    with Client(broker, site.context()) as client:
        status, problem = client.publish()
        assert (status, problem["code"]) == (401, "T216")
        assert client.call("GET", "/livez")[0] == 200


def test_a_token_signs_in_with_or_without_a_certificate_and_counts_more(
    site: Site, broker: Served, alice: ssl.SSLContext
) -> None:
    token = (broker.directory / "admin.token").read_text().strip()
    for context in (site.context(), alice):
        with Client(broker, context) as client:
            assert client.publish("elsewhere", authorization=f"Bearer {token}")[0] == 202
    with Client(broker, alice) as client:
        assert client.publish(authorization="Bearer wrong")[0] == 401
        assert client.publish()[0] == 202


def test_a_certificate_of_one_connection_is_not_that_of_another(
    site: Site, broker: Served, alice: ssl.SSLContext
) -> None:
    with Client(broker, alice) as signed, Client(broker, site.context()) as unsigned:
        for _ in range(3):
            assert signed.publish()[0] == 202
            assert unsigned.publish()[0] == 401


ELSEWHERE = authority("elsewhere")
SAME_NAME = authority("site")
WRONG: dict[str, dict[str, Any]] = {
    "of another authority": {"by": ELSEWHERE},
    "of an authority of the same name": {"by": SAME_NAME},
    "expired": {"begins": NOW - 9 * DAY, "ends": NOW - DAY},
    "not valid yet": {"begins": NOW + 5_000 * DAY, "ends": NOW + 6_000 * DAY},
    "for servers": {"usages": (ExtendedKeyUsageOID.SERVER_AUTH,)},
    "rsa-1024": {"key": rsa.generate_private_key(65537, 1024)},
    "secp256k1": {"key": ec.generate_private_key(ec.SECP256K1())},
    "called broker": {"common": "broker"},
    "called anonymous": {"common": "anonymous"},
    "an authority": {"is_authority": True},
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_wrong_certificates_sign_nobody_in(
    site: Site, broker: Served, what: str, version: str
) -> None:
    how = {"common": "alice", **WRONG[what]}
    context = site.context(site.issue("wrong", **how))
    context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, version)

    try:
        with Client(broker, context) as client:
            status, problem = client.publish()
    except Refused:
        return  # OpenSSL has refused it, before there was a connection
    assert (status, problem["code"]) == (401, "T216")
    if "is not accepted" in problem["detail"]:
        assert problem["detail"] == "the certificate is not accepted", "it does not say why"
        assert "a certificate was refused" in broker.said()
    else:
        assert what == "secp256k1", "by TLS 1.3 a client cannot show such a one"


def test_a_certificate_signed_by_that_of_a_client_is_refused(site: Site, broker: Served) -> None:
    site.issue("alice2", "alice")
    chain = site.last
    certificate, key = site.issue("mallory", by=chain)
    Path(certificate).write_bytes(Path(certificate).read_bytes() + chain.pem)

    with contextlib.suppress(Refused), Client(broker, site.context((certificate, key))) as client:
        assert client.publish()[0] == 401


def test_who_sends_the_certificate_of_somebody_without_its_key_does_not_connect(
    site: Site, broker: Served
) -> None:
    """Python's ssl and OpenSSL do not let a client do that; here their check is made to see only
    another key of the same kind."""
    own = site.issue("mallory2", "mallory")
    theirs = site.issue("alice3", "alice")

    with pytest.raises(ssl.SSLError):
        site.context((theirs[0], own[1]))


def test_probes_are_answered_whatever_certificate_is_shown(site: Site, broker: Served) -> None:
    wrong = site.context(site.issue("wrong3", "broker"))

    with Client(broker, wrong) as client:
        assert client.call("GET", "/livez")[0] == 200


# Other listeners

NOTIFY = b"""<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>
<w:Notify xmlns:w="http://docs.oasis-open.org/wsn/b-2"><w:NotificationMessage>
<w:Topic Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete">lab/soap</w:Topic>
<w:Message><m xmlns="urn:m">%s</m></w:Message></w:NotificationMessage></w:Notify>
</s:Body></s:Envelope>"""


def soap_tcp(broker: Served, context: ssl.SSLContext, mark: bytes) -> bytes:
    """Publish, and what is answered within a moment; b"" for nothing."""
    decoder = Decoder()
    with connect(broker.soap_tcp, context) as opened:
        opened.sendall(envelope_message("1.1", NOTIFY % mark))
        opened.settimeout(0.5)
        try:
            while (message := decoder.next_message()) is None:
                data = opened.recv(1 << 16)
                if not data:
                    return b""
                decoder.receive(data)
        except TimeoutError:
            return b""
        except OSError as error:
            raise Refused(str(error)) from error
    return bytes(message.parts[0].data)


def stored(broker: Served, operator: ssl.SSLContext) -> str:
    with Client(broker, operator) as client:
        return json.dumps(client.call("GET", "/events?after=0&limit=1000")[1])


def test_soap_tcp_knows_its_clients(
    site: Site, broker: Served, alice: ssl.SSLContext, operator: ssl.SSLContext
) -> None:
    assert b"Fault" not in soap_tcp(broker, alice, b"by-alice")
    until(lambda: "by-alice" in stored(broker, operator), "it is stored")

    assert b"Fault" in soap_tcp(broker, site.context(), b"by-nobody")
    with contextlib.suppress(Refused):
        assert soap_tcp(broker, site.context(site.issue("w", "broker")), b"by-nobody") == b""
    assert "by-nobody" not in stored(broker, operator)


def pegasus(broker: Served, context: ssl.SSLContext, run: str) -> None:
    record = {"event": "stampede.xwf.start", "xwf_id": run, "ts": 1, "restart_count": 0}
    address = json.loads(ready_line(broker))["pegasus"]
    with contextlib.suppress(OSError), connect(address, context) as opened:
        opened.sendall(json.dumps(record).encode() + b"\n")
        opened.unwrap()


def ready_line(broker: Served) -> str:
    token = (broker.directory / "admin.token").read_text().strip()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with Client(broker, context) as client:
        headers = {"authorization": f"Bearer {token}"}
        return json.dumps(client.call("GET", "/status", headers=headers)[1]["listeners"])


def test_pegasus_daemons_are_known(site: Site, broker: Served, operator: ssl.SSLContext) -> None:
    pegasus(broker, operator, "run-of-olga")
    until(lambda: "run-of-olga" in stored(broker, operator), "it is stored")

    pegasus(broker, site.context(), "run-of-nobody")
    until(lambda: 'code="T216"' in broker.said(), "it is refused")
    assert "run-of-nobody" not in stored(broker, operator)


# While it runs


def test_who_is_revoked_is_signed_in_no_more_and_what_is_open_ends(tmp_path: Path) -> None:
    site = Site(tmp_path)
    alice = site.context(site.issue("alice"))
    revoked = site.last
    bob = site.context(site.issue("bob", "alice"))
    with (
        site.broker() as broker,
        Client(broker, alice) as open_one,
        Client(broker, alice) as stream,
        Client(broker, bob) as other,
    ):
        assert open_one.publish()[0] == 202
        stream.connection.request("GET", "/events/stream?filter=topic%20lab/**&after=0")
        answer = stream.connection.getresponse()
        assert b"id:" in answer.readline() + answer.readline()
        session = open_one.connection.sock.session  # type: ignore[union-attr]

        site.revoke(revoked)

        until(lambda: open_one.publish()[0] == 401, "its connection is worth nothing")
        while answer.readline():  # what was sent before, and then the end
            pass
        with Client(broker, alice) as again:
            assert again.publish()[0] == 401
        assert other.publish(id="e2")[0] == 202
        assert session is not None
        resumed = resume(broker, alice, session)
        assert resumed.session_reused
        resumed.sendall(b"GET /access/whoami HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert resumed.recv(1 << 16).startswith(b"HTTP/1.1 401")
        resumed.close()


def resume(broker: Served, context: ssl.SSLContext, session: ssl.SSLSession) -> ssl.SSLSocket:
    import socket

    host, _, port = broker.address.rpartition(":")
    plain = socket.create_connection((host, int(port)), timeout=20)
    return context.wrap_socket(plain, server_hostname="localhost", session=session)


def complaint(site: Site, broker: Served) -> str:
    with Client(broker, site.context()) as client:
        return json.dumps(client.call("GET", "/readyz")[1])


def test_without_a_list_that_holds_nobody_signs_in_and_who_is_connected_stays(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path)
    alice = site.context(site.issue("alice"))
    with site.broker() as broker, Client(broker, alice) as connected:
        assert connected.publish()[0] == 202

        site.revoke(begins=NOW + 5_000 * DAY, ends=NOW + 6_000 * DAY)

        until(lambda: "of the future" in complaint(site, broker), "it is a complaint")
        with Client(broker, alice) as new:
            assert new.publish(id="e2")[0] == 401
        assert connected.publish(id="e3")[0] == 202
        assert "there is" not in complaint(site, broker)


def test_a_list_that_cannot_be_believed_is_a_complaint_and_the_last_one_holds(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path)
    alice = site.context(site.issue("alice"))
    revoked = site.last
    bob = site.context(site.issue("bob", "alice"))
    site.revoke(revoked)
    with site.broker() as broker:
        with Client(broker, bob) as client:
            assert client.publish(id="bob")[0] == 202
        site.revoke(signed_with=Site(tmp_path, "other").authority.key)

        until(lambda: "signed by none of the authorities" in complaint(site, broker), "a complaint")
        with Client(broker, alice) as still_revoked:
            assert still_revoked.publish()[0] == 401
        site.revoke()
        until(lambda: "authorities" not in complaint(site, broker), "it is in order")
        with Client(broker, alice) as given_back:
            assert given_back.publish()[0] == 202


def test_an_expired_list_at_the_start_is_told(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.revoke(begins=NOW - 9 * DAY, ends=NOW - DAY)
    alice = site.context(site.issue("alice"))
    with site.broker() as broker, Client(broker, alice) as client:
        assert client.publish()[0] == 401
        assert "the revocation list of CN=site is out of date" in broker.said()
        assert "out of date" in complaint(site, broker)


def test_authorities_are_exchanged_and_those_that_are_gone_sign_nobody_in(tmp_path: Path) -> None:
    site, other = Site(tmp_path), Site(tmp_path, "other")
    with site.broker(CERTIFICATES__CRL_FILE="") as broker:
        alice = site.context(site.issue("alice"))
        carol = site.context(other.issue("carol", "alice"))
        with pytest.raises(Refused), Client(broker, carol) as client:
            client.publish()

        site.ca.write_bytes(other.authority.pem)

        def signs_in(context: ssl.SSLContext) -> bool:
            try:
                with Client(broker, context) as client:
                    return client.publish()[0] == 202
            except Refused:
                return False

        until(lambda: signs_in(carol), "the new authority signs in")
        assert not signs_in(alice)


@pytest.mark.parametrize("how", ["soon", "at a signal"])
def test_the_broker_s_own_certificate_is_exchanged_for_new_connections(
    tmp_path: Path, how: str
) -> None:
    site = Site(tmp_path)
    reload_s = {} if how == "soon" else {"CERTIFICATES__RELOAD_S": "3600"}
    with site.broker(**reload_s) as broker, Client(broker, site.context()) as before:

        def serial() -> int:
            with Client(broker, site.context()) as client:
                shown = client.connection.sock.getpeercert()  # type: ignore[union-attr]
                return int(str(shown["serialNumber"]), 16)

        assert before.call("GET", "/livez")[0] == 200
        first = serial()
        site.issue("host", "localhost", hosts=("localhost",), usages=None)
        if how == "at a signal":
            time.sleep(0.5)
            assert serial() == first
            broker.process.send_signal(signal.SIGHUP)

        until(lambda: serial() == site.last.certificate.serial_number, "the new one is shown")
        assert before.call("GET", "/livez")[0] == 200


def test_a_key_that_does_not_fit_changes_nothing_but_is_a_complaint(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with site.broker() as broker:
        key = Path(site.host[1])
        was = key.read_bytes()
        key.write_bytes(Path(site.issue("other")[1]).read_bytes())

        until(lambda: "does not belong to" in complaint(site, broker), "a complaint")
        with Client(broker, site.context()) as new:
            assert new.call("GET", "/livez")[0] == 200
        key.write_bytes(was)
        until(lambda: "does not belong" not in complaint(site, broker), "it is in order")
        key.chmod(0o644)
        until(lambda: "can be read or changed by others" in complaint(site, broker), "a complaint")


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
        until(lambda: b"200" not in create_box(olga), "it is revoked")
    finally:
        running.terminate()
        assert running.wait(20) == 0
        assert running.stdout is not None
        running.stdout.close()
