"""Certificates, authorities and revocation lists are exchanged while a broker runs."""

from __future__ import annotations

import json
import signal
import ssl
import time
from pathlib import Path

import pytest

from pki import DAY, NOW
from served import Served
from tls_site import Client, Refused, Site
from waiting import wait_until

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

        wait_until(lambda: open_one.publish()[0] == 401, "its connection is worth nothing")
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

        wait_until(lambda: "of the future" in complaint(site, broker), "it is a complaint")
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

        wait_until(
            lambda: "signed by none of the authorities" in complaint(site, broker), "a complaint"
        )
        with Client(broker, alice) as still_revoked:
            assert still_revoked.publish()[0] == 401
        site.revoke()
        wait_until(lambda: "authorities" not in complaint(site, broker), "it is in order")
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

        wait_until(lambda: signs_in(carol), "the new authority signs in")
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

        wait_until(lambda: serial() == site.last.certificate.serial_number, "the new one is shown")
        assert before.call("GET", "/livez")[0] == 200


def test_a_key_that_does_not_fit_changes_nothing_but_is_a_complaint(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with site.broker() as broker:
        key = Path(site.host[1])
        was = key.read_bytes()
        key.write_bytes(Path(site.issue("other")[1]).read_bytes())

        wait_until(lambda: "does not belong to" in complaint(site, broker), "a complaint")
        with Client(broker, site.context()) as new:
            assert new.call("GET", "/livez")[0] == 200
        key.write_bytes(was)
        wait_until(lambda: "does not belong" not in complaint(site, broker), "it is in order")
        key.chmod(0o644)
        wait_until(
            lambda: "can be read or changed by others" in complaint(site, broker), "a complaint"
        )
