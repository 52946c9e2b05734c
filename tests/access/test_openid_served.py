"""A broker takes the tokens of an issuer, on every way in that takes tokens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import msgspec
import pytest

from access.issuer import OpenIdIssuer, SigningKey


@pytest.fixture(scope="module")
def issuer() -> Iterator[OpenIdIssuer]:
    with OpenIdIssuer() as running:
        yield running


@pytest.fixture(scope="module")
def broker(issuer: OpenIdIssuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("broker")
    (folder / "tocsin.toml").write_text(
        f'[auth]\nmode = "required"\n[openid]\nissuer = "{issuer.url}"\naudience = "tocsin"\n'
        'prefix = "lab:"\n[[access]]\ngroup = "lab:ops"\naction = "publish"\ntopic = "ops/**"\n'
        "[archive]\nenabled = false\n[monitor]\nenabled = false\n"
    )
    command = [
        *(sys.executable, "-m", "tocsin", "serve", "--config", str(folder / "tocsin.toml")),
        *("--data", str(folder / "data"), "--http", "127.0.0.1:0", "--frames", "off"),
        *("--soap-tcp", "off", "--link", "off", "--json"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=dict(os.environ))
    assert process.stdout is not None
    said = msgspec.json.decode(process.stdout.readline())
    yield f"http://{said['http']}"
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def publish(broker: str, token: str, topic: str = "ops/x") -> tuple[int, bytes]:
    request = urllib.request.Request(
        f"{broker}/events",
        b"{}",
        {
            "content-type": "application/json",
            "ce-specversion": "1.0",
            "ce-id": os.urandom(8).hex(),
            "ce-source": "/test",
            "ce-type": "test",
            "ce-topic": topic,
            "authorization": f"Bearer {token}",
        },
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_whoever_has_a_token_of_the_issuer_may_what_the_rules_give(
    broker: str, issuer: OpenIdIssuer
) -> None:
    alice = issuer.token("alice", groups=["ops"])
    assert publish(broker, alice)[0] == 202
    assert publish(broker, alice, "other/x")[0] == 403
    assert publish(broker, issuer.token("bob"))[0] == 403
    status, body = publish(broker, SigningKey().token(issuer.claims("alice", groups=["ops"])))
    assert status == 401
    assert b"T216" in body
    status, body = publish(broker, issuer.token("alice", aud="another", groups=["ops"]))
    assert status == 401
    assert b"another" not in body  # what was wrong is for the audit log
