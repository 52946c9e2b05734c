"""Grants at a real broker: an entity signs in with its key, presents what it was granted, and
publishes and follows the topic from then on, until the owner takes it back."""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from creating import ALICE, DAY_NS, NS, OPEN, TRUSTED, identity, nonce, opened

from served import Served
from tocsin.access.decision import Action
from tocsin.access.delegation.chain import Terms, TopicOwner, first_link
from tocsin.access.delegation.proof import SIGN_IN, prove
from tocsin.access.delegation.revocations import sign_revocations
from tocsin.topics.advertisement import SignedAdvertisement
from tocsin.topics.identity import Identity

# At a broker it has to be valid now, and not only when the other tests are.
LIFETIME_NS = 9 * 365 * DAY_NS
SIGNED, ADVERT = opened(
    rules=msgspec.structs.replace(OPEN, lifetime_ns_max=LIFETIME_NS), lifetime_ns=LIFETIME_NS
)
BOB = identity("bob")


class Client:
    """Somebody with a token, or with none."""

    def __init__(self, broker: Served, token: str = "") -> None:
        self._broker = broker
        self.headers = {"authorization": f"Bearer {token}"} if token else {}

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        kind = "application/cloudevents+json" if path == "/events" else "application/json"
        request = urllib.request.Request(
            self._broker.url + path, data, {**self.headers, "content-type": kind}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                content = answer.read()
                return answer.status, json.loads(content) if content else None
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def publish(self, number: int, topic: str = ADVERT.topic) -> int:
        event = {"specversion": "1.0", "id": str(number), "source": "/s", "type": "t"}
        return self.call("POST", "/events", {**event, "topic": topic})[0]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Served]:
    trusted = ",".join(sorted(TRUSTED.pinned))
    environment = {"TOCSIN_AUTH__MODE": "required", "TOCSIN_TOPICS__TRUSTED_TDNS": trusted}
    found = Served(tmp_path / "data", "--frames", "off", "--soap-tcp", "off", env=environment)
    try:
        yield found
    finally:
        found.stop()


def sign_in(broker: Served, who: Identity) -> Client:
    _, challenge = Client(broker).call("POST", "/topics/sign-in/nonce")
    proof = prove(who.signing, SIGN_IN, challenge["audience"], challenge["nonce"])
    key = base64.b64encode(who.entity.spki).decode()
    status, found = Client(broker).call("POST", "/topics/sign-in", {"key": key, "proof": proof})
    assert (status, found["entity_id"]) == (201, who.eid)
    return Client(broker, found["token"])


def written(signed: SignedAdvertisement) -> dict[str, str]:
    return {
        "jws": signed.jws,
        "tdn_certificate": base64.b64encode(signed.tdn_certificate).decode(),
        "creator_certificate": base64.b64encode(signed.creator_certificate).decode(),
    }


def test_a_grant_is_used_at_a_broker_and_taken_back(broker: Served) -> None:
    now_ns = time.time_ns()
    owner = TopicOwner(ADVERT.uuid, ADVERT.topic, ADVERT.creator.key)
    operations = frozenset({Action.PUBLISH, Action.SUBSCRIBE})
    terms = Terms(operations, now_ns - 60 * NS, now_ns + DAY_NS)
    link = first_link(owner, ALICE.signing, BOB.signing.public, terms, nonce("b"))
    bob = sign_in(broker, BOB)
    assert bob.publish(1) == 403
    assert Client(broker).call("POST", "/topics/grants", {})[0] == 401
    presented = {"advertisement": written(SIGNED), "grants": [link]}

    status, grant = bob.call("POST", "/topics/grants", presented)

    assert status == 201, grant
    assert (grant["holder"], grant["topic"]) == (BOB.eid, ADVERT.topic)
    assert bob.publish(1) == 202
    assert bob.publish(2, "lab/radar") == 403
    lines = follow(broker, bob)
    broker.kill()
    broker.start()  # what was answered is on disk; who signed in by a token signs in again
    bob = sign_in(broker, BOB)
    assert bob.publish(3) == 202
    assert [each["id"] for each in bob.call("GET", "/topics/grants")[1]["grants"]] == [grant["id"]]
    assert any('"id":"1"' in line for line in lines)

    revoked = sign_revocations(
        ADVERT.uuid, 1, {nonce("b"): now_ns + DAY_NS}, ALICE.signing, now_ns, now_ns + DAY_NS
    )
    body = {"advertisement": written(SIGNED), "revocations": revoked}
    status, answer = bob.call("POST", "/topics/revocations", body)
    assert (status, answer["revoked"]) == (200, [nonce("b")])
    assert bob.publish(4) == 403
    assert follow_status(broker, bob) == 403
    assert bob.call("DELETE", f"/topics/grants/{grant['id']}")[0] == 204
    assert bob.call("GET", "/topics/grants")[1] == {"grants": []}


def follow(broker: Served, client: Client) -> list[str]:
    """The lines of a stream of the topic, until the first event has come."""
    request = urllib.request.Request(
        f"{broker.url}/events/stream?filter=topic+{ADVERT.topic}&after=0", headers=client.headers
    )
    lines: list[str] = []
    came = threading.Event()

    def read() -> None:
        with urllib.request.urlopen(request, timeout=30) as stream:
            for line in stream:
                lines.append(line.decode())
                if line.startswith(b"data:"):
                    came.set()
                    return

    threading.Thread(target=read, daemon=True).start()
    assert came.wait(30)
    return lines


def follow_status(broker: Served, client: Client) -> int:
    return client.call("GET", f"/events/stream?filter=topic+{ADVERT.topic}")[0]


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"key": "", "proof": ""},
        {"key": "%%%", "proof": "a.b.c"},
        {"key": "AAAA", "proof": "x" * 100_000},
        {"key": base64.b64encode(BOB.entity.spki).decode(), "proof": "e30.e30.e30"},
        {"key": "AAAA", "proof": "a", "more": 1},
    ],
)
def test_what_is_no_proof_signs_nobody_in(broker: Served, body: object) -> None:
    status, problem = Client(broker).call("POST", "/topics/sign-in", body)

    assert status in (400, 401)
    assert problem["code"] in ("T201", "T220", "T224")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"advertisement": {}},
        {"advertisement": {**written(SIGNED), "jws": "a.b.c"}},
        {"advertisement": {**written(SIGNED), "tdn_certificate": "AAAA"}},
        {"advertisement": written(SIGNED), "grants": ["a.b.c"]},
        {"advertisement": written(SIGNED), "grants": ["x"] * 5},
        {"advertisement": written(SIGNED), "grants": [1]},
        {"advertisement": written(SIGNED), "other": 1},
    ],
)
def test_what_is_no_grant_is_refused_and_changes_nothing(broker: Served, body: object) -> None:
    bob = sign_in(broker, BOB)

    status, problem = bob.call("POST", "/topics/grants", body)

    assert status in (400, 403), problem
    assert bob.call("GET", "/topics/grants")[1] == {"grants": []}
