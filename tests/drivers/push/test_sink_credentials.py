"""A sink that wants a credential gets it with every request, and nobody else does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from world import World

from tocsin.broker.delivery.outcome import Answered, Failed
from tocsin.drivers.secret_box import KEY_NAME, SecretBox
from tocsin.errors import BadCredential
from tocsin.event.subscription import Config, SinkCredential
from tocsin.wire.cloudevents.webhook import Allowed, Refused

OK = b"HTTP/1.1 204 No Content\r\n\r\n"
AGREES = b"HTTP/1.1 200 OK\r\nwebhook-allowed-origin: *\r\ncontent-length: 0\r\n\r\n"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
LINE = "authorization: Bearer verysecret"


@pytest.fixture
def box(tmp_path: Path) -> SecretBox:
    return SecretBox(tmp_path)


@pytest.mark.parametrize("mode", [Config(), Config(mode="structured"), Config(batch=5)])
def test_it_is_in_every_push_and_handshake(world: World, box: SecretBox, mode: Config) -> None:
    world.restart(unseal=box.unseal)
    address = world.answering(OK, AGREES)
    credential = SinkCredential("bearer", box.seal(LINE, address))

    outcome = world.push(address, config=Config(
        mode=mode.mode, batch=mode.batch, credential=credential, secret=box.seal(SECRET, "signing")
    ))  # fmt: skip
    answer = world.shake_hands(address, credential=credential)

    assert outcome == Answered(204)
    assert isinstance(answer, Allowed)
    assert [each.headers["authorization"] for each in world.requests] == ["Bearer verysecret"] * 2
    assert "webhook-signature" in world.requests[0].headers


def test_a_subscription_without_one_shares_nothing_with_one_that_has(
    world: World, box: SecretBox
) -> None:
    world.restart(unseal=box.unseal)
    address = world.answering(OK)
    credential = SinkCredential("bearer", box.seal(LINE, address))

    world.push(address, config=Config(credential=credential))
    world.push(address, config=Config())

    assert "authorization" not in world.requests[1].headers


def test_one_that_was_sealed_for_another_sink_is_not_sent(world: World, box: SecretBox) -> None:
    world.restart(unseal=box.unseal)
    address = world.answering(OK)
    credential = SinkCredential("bearer", box.seal(LINE, "https://other.example/hook"))

    outcome = world.push(address, config=Config(credential=credential))
    answer = world.shake_hands(address, credential=credential)

    assert isinstance(outcome, Failed)
    assert "for another sink" in outcome.reason
    assert isinstance(answer, Refused)
    assert world.requests == []


def test_a_sink_that_repeats_its_requests_does_not_have_us_show_it(
    world: World, box: SecretBox
) -> None:
    world.restart(unseal=box.unseal)
    echo = b"you said Bearer verysecret"
    address = world.answering(
        b"HTTP/1.1 400 Bad\r\nX-Echo: verysecret\r\ncontent-length: %d\r\n\r\n%b"
        % (len(echo), echo)
    )
    credential = SinkCredential("bearer", box.seal(LINE, address))

    outcome = world.push(address, config=Config(credential=credential))

    assert isinstance(outcome, Answered)
    assert "verysecret" not in repr(outcome)
    assert "you said Bearer" in repr(outcome)


def test_a_secret_of_a_former_version_is_used_as_it_is(world: World, box: SecretBox) -> None:
    world.restart(unseal=box.unseal)

    assert world.push(world.answering(OK), config=Config(secret=SECRET)) == Answered(204)
    assert "webhook-signature" in world.requests[0].headers


def test_the_key_is_made_at_first_use_and_belongs_to_the_broker_alone(tmp_path: Path) -> None:
    box, path = SecretBox(tmp_path), tmp_path / KEY_NAME
    assert box.unseal("in clear", "x") == "in clear"
    assert not path.exists()

    sealed = box.seal("verysecret", "x")

    assert path.stat().st_mode & 0o777 == 0o600
    assert "verysecret" not in sealed
    assert sealed != box.seal("verysecret", "x"), "equal secrets do not look alike"
    assert SecretBox(tmp_path).unseal(sealed, "x") == "verysecret"
    with pytest.raises(BadCredential):
        box.unseal(sealed, "y")
    with pytest.raises(BadCredential):
        box.unseal(sealed[:-6] + "AAAAAA", "x")
    with pytest.raises(BadCredential):
        box.unseal("sealed.1.?", "x")


def test_a_key_that_is_gone_or_open_to_others_is_named(tmp_path: Path) -> None:
    sealed = SecretBox(tmp_path).seal("verysecret", "x")
    path = tmp_path / KEY_NAME

    os.chmod(path, 0o640)
    with pytest.raises(BadCredential) as refused:
        SecretBox(tmp_path).unseal(sealed, "x")
    assert refused.value.remedy == f"chmod 600 {path}"
    path.unlink()
    with pytest.raises(BadCredential, match=KEY_NAME):
        SecretBox(tmp_path).unseal(sealed, "x")
    assert not path.exists(), "another key would open nothing"
