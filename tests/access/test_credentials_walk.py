"""The walk over every operation, with real credentials: without one, with one that gives no right,
with one that is over, and with the right one. The operations come from the tables of the handlers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
import uvloop
from frames_walk import walk_requests
from http_walk import OPEN as OPEN_PATHS
from http_walk import example_of, walk_http
from pegasus_walk import walk_pegasus
from refusing import NOT_ALLOWED, NOT_SIGNED_IN, Refusing, Walk, refusing
from soap_walk import walk_soap, walk_soap_tcp

from tocsin.access.policy.rights import EVERY_RIGHT, Right, read_right
from tocsin.access.policy.tokens import Token, hash_of, token_text
from tocsin.wire.wss.write import username_token

# The walk shows one credential that is not valid more often than anybody may.
REQUIRED: dict[str, object] = {"auth.mode": "required", "auth.failed_sign_ins_max": 10_000}
SECRET = "s" * 43
# Where a client can show a token. Elsewhere it is who its certificate says, or nobody.
BY_TOKEN = (walk_http, walk_soap, walk_soap_tcp)
WITHOUT = (walk_requests, walk_pegasus)


def run(directory: Path, script: Callable[[Refusing], Awaitable[None]]) -> None:
    async def main() -> None:
        async with refusing(directory, settings_of=REQUIRED) as broker:
            await script(broker)

    uvloop.run(main())


def sign_in(broker: Refusing, *rights: Right, **also: object) -> Token:
    """All requests carry this token from now on."""
    token = Token("a" * 24, "ann", hash_of(SECRET), 0, rights=rights or None)
    token = msgspec.structs.replace(token, **also)
    broker.app.access_control.service.policy.set_token(token)
    broker.headers["authorization"] = f"Bearer {token_text(token.id, SECRET)}"
    broker.security = username_token(token.principal, token_text(token.id, SECRET))
    return token


# What everybody who is signed in may learn: of himself.
OWN = ("/access/tokens", "/access/rules", "/access/check", "/access/quotas")


def _is_own(broker: Refusing, answered: str) -> bool:
    """Answered, as it should be, to somebody who is signed in."""
    method, _, rest = answered.partition(" ")
    path, _, answer = rest.partition(":")
    is_own = method in ("GET", "HEAD") and path.partition("?")[0] in OWN and answer.strip() == "200"
    has_none = answered == "DELETE /access/tokens/x: 404 T218"
    return (is_own or has_none) and broker.refusal == NOT_ALLOWED


async def nothing_happened(broker: Refusing, walk: Walk) -> None:
    before = broker.stored()

    assert [each for each in await walk(broker) if not _is_own(broker, each)] == []
    assert broker.stored() == before
    assert broker.reads == []


@pytest.mark.parametrize("walk", [*BY_TOKEN, *WITHOUT])
def test_without_a_credential_nothing_is_done(walk: Walk, tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        broker.refusal = NOT_SIGNED_IN
        await nothing_happened(broker, walk)

    run(tmp_path, script)


@pytest.mark.parametrize("walk", BY_TOKEN)
def test_with_a_credential_that_has_no_right_nothing_is_done(walk: Walk, tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        sign_in(broker)
        broker.refusal = NOT_ALLOWED
        await nothing_happened(broker, walk)

    run(tmp_path, script)


@pytest.mark.parametrize("walk", BY_TOKEN)
@pytest.mark.parametrize("over", [{"revoked_ns": 1}, {"expires_ns": 1}, {"hash": b"other"}])
def test_with_a_credential_that_is_not_valid_nothing_is_done(
    walk: Walk, over: dict[str, object], tmp_path: Path
) -> None:
    async def script(broker: Refusing) -> None:
        sign_in(broker, EVERY_RIGHT, **over)
        broker.refusal = NOT_SIGNED_IN
        await nothing_happened(broker, walk)

    run(tmp_path, script)


@pytest.mark.parametrize("walk", BY_TOKEN)
def test_with_the_right_to_other_topics_nothing_is_published_or_read(
    walk: Walk, tmp_path: Path
) -> None:
    async def script(broker: Refusing) -> None:
        before = broker.stored()
        sign_in(broker, read_right({"action": "*", "topic": "elsewhere/**"}, 0))
        await walk(broker)

        head, *_ = before
        assert broker.stored()[0] == head

    run(tmp_path, script)


@pytest.mark.parametrize("walk", BY_TOKEN)
def test_with_every_right_everything_is_answered(walk: Walk, tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        sign_in(broker, EVERY_RIGHT)
        await walk(broker)

        assert len(broker.answers) > 50
        refused = [each for each in broker.answers if each[2] in ("T215", "T216")]
        assert refused == []

    run(tmp_path, script)


def test_what_is_open_is_open_without_a_credential_and_with_a_wrong_one(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        from http_walk import ask

        open_to_get = [
            path
            for path in OPEN_PATHS
            if path != "/access/whoami" and any(e.path == path and e.method == "GET" for e in all_)
        ]
        for path in open_to_get:
            status, code = await ask(broker.http.port, "GET", example_of(path))
            assert code not in ("T215", "T216"), (path, status)

    async def with_endpoints(broker: Refusing) -> None:
        all_.extend(broker.endpoints())
        await script(broker)

    all_: list[object] = []
    run(tmp_path, with_endpoints)
