"""Whoever may not know of something learns nothing of it by answers, counts or work: what is there
is refused as what is not, what others have changes nothing in one's own answers, and what is wrong
with a credential is neither said nor to be seen."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop
from http_walk import BODIES, QUERIES, exchange, fetch
from refusing import HIDDEN, Refusing, Way, refusing
from site_clients import BAD_TOKENS, ELSEWHERE_RIGHT, REQUIRED, SECRET_OF_TOKEN, sign_in

from tocsin.access.policy import tokens
from tocsin.access.policy.rights import EVERY_RIGHT
from tocsin.access.policy.tokens import Token, hash_of, token_text
from tocsin.access.session import internal
from tocsin.access.sign_in import sign_in as sign_in_module
from tocsin.drivers.http.rest.endpoint import Open
from tocsin.event.event import Event

Script = Callable[[Refusing], Awaitable[None]]
ADMIN = Token("d" * 24, "admin", hash_of("t" * 43), 0, rights=(EVERY_RIGHT,))
AS_ADMIN = {"authorization": f"Bearer {token_text(ADMIN.id, 't' * 43)}"}


def run(directory: Path, script: Script) -> None:
    async def main() -> None:
        async with refusing(directory, settings_of=REQUIRED) as broker:
            broker.policy.set_token(ADMIN)
            await script(broker)

    uvloop.run(main())


async def asked(
    broker: Refusing, headers: dict[str, str], method: str, target: str, body: object = None
) -> tuple[int, str]:
    return await fetch(broker.http.port, method, target, body, headers)


# What is there, and what is not


CONTINUOUS = {"request": "system = Linux", "model": "static continuous"}
MADE = [
    ("POST", "/subscriptions", BODIES["POST /subscriptions"]),
    ("POST", "/boxes", {}),
    ("POST", "/directory", BODIES["POST /directory"]),
    ("POST", "/resources", BODIES["POST /resources"]),
    ("POST", "/discoveries", CONTINUOUS),
    ("POST", "/blackboard/publishers", BODIES["POST /blackboard/publishers"]),
    ("PUT", "/blackboard/subscribers", BODIES["PUT /blackboard/subscribers"]),
    ("POST", "/access/tokens", BODIES["POST /access/tokens"]),
    ("POST", "/access/rules", {"principal": "somebody", "action": "read"}),
]
RUN = "r-01941f29"


async def make_everything(broker: Refusing) -> list[str]:
    """One of each that has an id, by an administrator; their ids."""
    ids = [RUN]
    for method, target, body in MADE:
        status, text = await asked(broker, AS_ADMIN, method, target, body)
        assert status in (200, 201), (target, text)
        found = re.search(r'"id":"([^"]+)"', text)
        assert found, text
        ids.append(found[1])
    status, text = await asked(broker, AS_ADMIN, "POST", "/ingest/nextflow", WEBLOG)
    assert status in (200, 202), text
    async with asyncio.timeout(10):
        while (await asked(broker, AS_ADMIN, "GET", f"/runs/{RUN}"))[0] != 200:
            await asyncio.sleep(0.05)
    return ids


WEBLOG = BODIES["POST /ingest/nextflow"]


@pytest.mark.parametrize("rights", [(), (ELSEWHERE_RIGHT,)], ids=["none", "elsewhere"])
def test_what_others_have_is_refused_as_what_is_not_there(
    rights: tuple[object, ...], tmp_path: Path
) -> None:
    """By every endpoint whose path has a name in it, whatever kind of thing the name is of."""

    async def script(broker: Refusing) -> None:
        ids = await make_everything(broker)
        sign_in(broker, *rights)  # type: ignore[arg-type]
        different = []
        named = [each for each in broker.endpoints() if "{" in each.path]
        for endpoint in named:
            if isinstance(endpoint.access, Open):
                continue
            body = BODIES.get(f"{endpoint.method} {endpoint.path}")
            for id in ids:
                answers = []
                for each in (id, unlike(id)):
                    target = re.sub(r"\{\w+(:path)?\}", each, endpoint.path)
                    status, text = await asked(
                        broker, broker.headers, endpoint.method, target, body
                    )
                    answers.append((status, text.replace(each, "ID")))
                if answers[0] != answers[1]:
                    different.append((endpoint.method, endpoint.path, *answers))
        assert different == []
        assert len(named) > 20

    run(tmp_path, script)


def unlike(id: str) -> str:
    """Another id that might be one."""
    return id[:-1] + ("0" if id[-1] != "0" else "1")


# What others have


async def add_others(broker: Refusing) -> None:
    await make_everything(broker)
    many = [Event(f"h{n}", "/s", "hidden", topic="secret/a", data=b"1") for n in range(50)]
    await broker.app.port.publish(internal("test"), many)


async def add_own(broker: Refusing) -> None:
    few = [Event(f"o{n}", "/s", "open", topic="elsewhere/a", data=b"1") for n in range(5)]
    await broker.app.port.publish(internal("test"), few)
    for target, also in (("/subscriptions", {"sink": "http://127.0.0.1:10/own"}), ("/boxes", {})):
        body = {**also, "filters": [{"topic": "elsewhere/**"}]}
        status, text = await asked(broker, broker.headers, "POST", target, body)
        assert status == 201, text


def normal(text: str) -> str:
    """Places in the log, times, ids, and how far a delivery has come are others in each broker."""
    text = re.sub(r"[0-9a-f]{24}", "ID", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "TIME", text)
    text = re.sub(r'"sequences":\[[0-9,]*\]', "", text)
    text = re.sub(r'"(next_attempt|last_error|sink_state)":(null|"[^"]*")', "", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "HERE", text)
    names = "seq|last_seq|next|cursor|behind|waiting|failed_attempts|events_per_s"
    return re.sub(rf'"({names})":[0-9.]+', "", text)


def test_what_others_have_changes_nothing_in_what_somebody_is_answered(tmp_path: Path) -> None:
    """But the numbers of events, which are those of their places in the log of everybody."""
    answers: list[dict[str, tuple[int, str]]] = []

    async def script(broker: Refusing) -> None:
        sign_in(broker, ELSEWHERE_RIGHT)
        if answers:
            await add_others(broker)
        await add_own(broker)
        found = {}
        for endpoint in broker.endpoints():
            if endpoint.method != "GET" or endpoint.path in broker.http.long_lived:
                continue
            target = re.sub(r"\{\w+(:path)?\}", "x", endpoint.path)
            target += QUERIES.get(f"GET {endpoint.path}", "")
            status, text = await asked(broker, broker.headers, "GET", target)
            found[target] = status, normal(text)
        answers.append(found)

    run(tmp_path / "alone", script)
    run(tmp_path / "others", script)

    alone, others = answers
    assert [
        (each, alone[each], others[each]) for each in alone if alone[each] != others[each]
    ] == []
    assert sum(status == 200 for status, _ in alone.values()) > 15
    assert HIDDEN.topic == "a/b", "which is one of the others, also of who is alone"


# What is wrong with a credential


def wrong_credentials(broker: Refusing) -> dict[str, str]:
    """The texts of tokens that sign nobody in, each for another reason."""
    found = {"of no token": token_text("c" * 24, SECRET_OF_TOKEN), "no token at all": "x"}
    for number, (what, over) in enumerate(BAD_TOKENS.items()):
        id = f"{number:024}"
        made = {"principal": "ann", "hash": hash_of(SECRET_OF_TOKEN), "created_ns": 0, **over}
        broker.policy.set_token(Token(id, **made))  # type: ignore[arg-type]
        found[what] = token_text(id, SECRET_OF_TOKEN)
    return found


async def answer_to(way: Way, headers: dict[str, str], target: str) -> tuple[int, str]:
    """With all of its head, but the time."""
    status, text = await exchange(way, "GET", target, None, headers)
    return status, text


def test_what_is_wrong_with_a_token_is_not_said(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        answers = set()
        for text in wrong_credentials(broker).values():
            reader, writer = await broker.open(broker.http.address)
            head = f"GET /events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {text}\r\n"
            writer.write(f"{head}connection: close\r\n\r\n".encode())
            answer = await asyncio.wait_for(reader.read(), 10)
            answers.add(re.sub(rb"date: [^\r]+", b"", answer))

        (only,) = answers
        assert only.startswith(b"HTTP/1.1 401 ")

    run(tmp_path, script)


def test_what_is_wrong_with_a_token_is_not_to_be_seen_by_the_work_that_it_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that there is costs one hash as one that there is not, and the hashes are compared in
    a time that does not depend on how much of them is the same."""
    hashed: list[str] = []
    compared: list[bytes] = []

    def counted(secret: str) -> bytes:
        hashed.append(secret)
        return hash_of(secret)

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(one)
        return one == other

    async def script(broker: Refusing) -> None:
        wrong = wrong_credentials(broker)
        del wrong["no token at all"]  # its form says so
        monkeypatch.setattr(tokens, "hash_of", counted)
        monkeypatch.setattr(sign_in_module, "hash_of", counted)
        monkeypatch.setattr(tokens.hmac, "compare_digest", compare)
        for what, text in wrong.items():
            hashed.clear()
            compared.clear()
            headers = {"authorization": f"Bearer {text}"}
            assert (await asked(broker, headers, "GET", "/events"))[0] == 401
            assert hashed == [SECRET_OF_TOKEN], what
            assert len(compared) == (what != "of no token"), what

    run(tmp_path, script)
