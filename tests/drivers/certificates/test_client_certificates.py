"""Certificates of clients at every listener with TLS: who is signed in, who is not, and for how
long."""

from __future__ import annotations

import contextlib
import json
import ssl
from pathlib import Path
from typing import Any

import pytest
from certificate_clients import soap_tcp
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from pki import DAY, NOW, authority
from served import Served
from tls_site import Client, Refused, Site, connect
from waiting import wait_until


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


def stored(broker: Served, operator: ssl.SSLContext) -> str:
    with Client(broker, operator) as client:
        return json.dumps(client.call("GET", "/events?after=0&limit=1000")[1])


def test_soap_tcp_knows_its_clients(
    site: Site, broker: Served, alice: ssl.SSLContext, operator: ssl.SSLContext
) -> None:
    assert b"Fault" not in soap_tcp(broker, alice, b"by-alice")
    wait_until(lambda: "by-alice" in stored(broker, operator), "it is stored")

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
    wait_until(lambda: "run-of-olga" in stored(broker, operator), "it is stored")

    pegasus(broker, site.context(), "run-of-nobody")
    wait_until(lambda: 'code="T216"' in broker.said(), "it is refused")
    assert "run-of-nobody" not in stored(broker, operator)
