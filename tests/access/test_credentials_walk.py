"""The walk over every operation with tokens, and without any credential: with none, with one that
gives no right, rights elsewhere or every right, that is not valid, or is over by the time it is
used. The operations come from the tables of the handlers. With certificates it is walked in
`test_certificates_walk.py`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop
from frames_conversation import Datagrams, converse
from frames_walk import Tcp, walk_frames, walk_gma, walk_requests
from http_walk import OPEN as OPEN_PATHS
from http_walk import ask, example_of, walk_http
from pegasus_walk import walk_pegasus
from refusing import NOT_ALLOWED, NOT_SIGNED_IN, Refusing, Walk, refusing
from site_clients import (
    BAD_TOKENS,
    ELSEWHERE_RIGHT,
    ENDS,
    REQUIRED,
    check_answers,
    nothing_happened,
    sign_in,
    sign_in_for_a_while,
)
from soap_walk import walk_soap, walk_soap_tcp
from sockets_walk import walk_sockets

from tocsin.access.policy.rights import EVERY_RIGHT, read_rule
from tocsin.drivers.http.rest.endpoint import Open

# Where a client can show a token. Elsewhere it is who its certificate says, or nobody.
BY_TOKEN = (walk_http, walk_gma, walk_soap, walk_soap_tcp)
BY_HEADER = (walk_http, walk_gma, walk_soap, walk_sockets)
WITHOUT = (walk_requests, walk_frames, walk_pegasus, walk_sockets)


def run(directory: Path, script: Callable[[Refusing], Awaitable[None]]) -> None:
    async def main() -> None:
        async with refusing(directory, settings_of=REQUIRED) as broker:
            await script(broker)

    uvloop.run(main())


@pytest.mark.parametrize("walk", [*BY_TOKEN, *WITHOUT])
def test_without_a_credential_nothing_is_done(walk: Walk, tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        broker.refusal = NOT_SIGNED_IN
        await nothing_happened(broker, walk)

    run(tmp_path, script)


@pytest.mark.parametrize("walk", [*BY_TOKEN, walk_sockets])
def test_with_a_credential_that_has_no_right_nothing_is_done(walk: Walk, tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        sign_in(broker)
        broker.refusal = NOT_ALLOWED
        await nothing_happened(broker, walk)

    run(tmp_path, script)


@pytest.mark.parametrize("walk", BY_TOKEN)
@pytest.mark.parametrize("what", BAD_TOKENS)
def test_with_a_credential_that_is_not_valid_nothing_is_done(
    walk: Walk, what: str, tmp_path: Path
) -> None:
    async def script(broker: Refusing) -> None:
        sign_in(broker, EVERY_RIGHT, **BAD_TOKENS[what])
        broker.refusal, broker.is_cut_off = NOT_SIGNED_IN, True
        await nothing_happened(broker, walk)

    run(tmp_path, script)


@pytest.mark.parametrize("walk", BY_HEADER)
@pytest.mark.parametrize("how", ENDS)
def test_with_a_credential_that_is_over_by_then_nothing_is_done(
    walk: Walk, how: str, tmp_path: Path
) -> None:
    async def script(broker: Refusing) -> None:
        sign_in_for_a_while(broker, how)
        await nothing_happened(broker, walk)

    run(tmp_path, script)


@pytest.mark.parametrize("walk", [*BY_TOKEN, walk_sockets])
def test_with_rights_elsewhere_nothing_is_published_or_shown(walk: Walk, tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        head, *_ = broker.stored()
        sign_in(broker, ELSEWHERE_RIGHT)
        await walk(broker)

        assert broker.stored()[0] == head
        assert broker.shown == []

    run(tmp_path, script)


@pytest.mark.parametrize("walk", BY_TOKEN)
def test_with_every_right_everything_is_answered(walk: Walk, tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        sign_in(broker, EVERY_RIGHT)
        await walk(broker)

        check_answers(broker, walk)

    run(tmp_path, script)


def test_what_is_open_is_open_without_a_credential_and_not_with_a_wrong_one(tmp_path: Path) -> None:
    """Whoever shows one that is no good learns that, also where none is needed."""

    async def script(broker: Refusing) -> None:
        opened = [each for each in broker.endpoints() if isinstance(each.access, Open)]
        targets = [
            example_of(each.path)
            for each in opened
            if each.method == "GET" and each.path != "/access/whoami"
        ]
        assert {each.path for each in opened} == set(OPEN_PATHS)
        wrong = {"authorization": "Bearer wrong"}
        for target in targets:
            status, code = await ask(broker.http.port, "GET", target)
            assert code not in ("T215", "T216"), (target, status)
            refused = await ask(broker.http.port, "GET", target, headers=wrong)
            assert refused == NOT_SIGNED_IN, target

    run(tmp_path, script)


# Performance events by UDP, and by TCP without TLS, carry no credential.


@pytest.mark.parametrize("way", ["tcp", "udp"])
def test_what_carries_no_credential_may_do_what_a_rule_gives_to_anonymous(
    way: str, tmp_path: Path
) -> None:
    """Without the rule, nothing: the first test here."""

    async def script(broker: Refusing) -> None:
        broker.policy.set_rules([read_rule({"principal": "anonymous", "action": "*"}, "1", 0)])
        if way == "udp":
            await converse(await Datagrams.connect(broker), await Datagrams.connect(broker))
        else:
            address = broker.frames.address
            await converse(await Tcp.connect(address), await Tcp.connect(address))

    run(tmp_path, script)


def test_what_a_rule_gives_to_anonymous_is_all_that_it_gives(tmp_path: Path) -> None:
    rule = {"principal": "anonymous", "action": "*", "topic": "elsewhere/**"}

    async def script(broker: Refusing) -> None:
        broker.policy.set_rules([read_rule(rule, "1", 0)])
        head, *_ = broker.stored()
        await walk_requests(broker)

        assert broker.stored()[0] == head
        assert broker.shown == []
        others = [each for each in broker.answers if "SubscribeRequest" in each[0]]
        assert {code for _, _, code in others} == {"", "T216"}  # to offer events it needs another

    run(tmp_path, script)
