"""`tocsin pub --sign` and `tocsin verify`: through a real broker, and of files."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from pki import authority, made, name
from tocsin.access.delegation.keys import PrivateKey
from tocsin.cli.main import run
from tocsin.client import AsyncPublisher, Publisher
from tocsin.store.identity_directory import keep_identity, open_or_make_identity
from tocsin.topics.identity import identity

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def alice(tmp_path: Path) -> str:
    where = str(tmp_path / "alice")
    open_or_make_identity(where, name="alice")
    return where


def lines(output: str) -> list[Any]:
    return [json.loads(line) for line in output.splitlines()]


def test_what_was_signed_is_verified_and_what_was_not_is_said(
    tocsin: Call, topic: str, alice: str
) -> None:
    assert (
        tocsin("pub", topic, '{"load5": 7}', "--attr", "run=4", "--sign", "--identity", alice)[0]
        == 0
    )
    assert tocsin("pub", topic, "text", "--sign", "--identity", alice)[0] == 0
    assert tocsin("pub", topic, "nobody's")[0] == 0

    code, out, err = tocsin("verify", "--filter", f"topic {topic}", "--all", "--json")

    *events, summary = lines(out)
    assert code == 0
    assert [each["signer"] and each["signer"]["name"] for each in events] == [
        "alice",
        "alice",
        None,
    ]
    assert summary == {"events": 3, "signed": 2, "failed": 0}
    eid = events[0]["signer"]["eid"]
    code, out, err = tocsin("verify", "--filter", f"topic {topic}", "--signer", eid)
    assert code == 7
    assert "not signed" in out
    assert "1 event of 3" in err


def test_lines_of_input_are_signed_one_by_one(
    tocsin: Call, topic: str, alice: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = tmp_path / "lines"
    source.write_text('{"a": 1}\nplain text\n')
    with source.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert tocsin("pub", topic, "-", "--sign", "--identity", alice)[0] == 0

    _, out, _ = tocsin("verify", "--filter", f"topic {topic}", "--json")

    assert lines(out) == [{"events": 2, "signed": 2, "failed": 0}]


def test_an_identity_is_made_on_first_use(
    tocsin: Call, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOCSIN_IDENTITY", str(tmp_path / "mine"))

    first, again = (tocsin("pub", topic, "1", "--sign") for _ in range(2))

    assert (first[0], again[0]) == (0, 0)
    assert "made an identity" in first[2]
    assert "made an identity" not in again[2]


def test_a_file_in_which_an_event_was_changed_fails(
    tocsin: Call, topic: str, alice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        tocsin("pub", topic, json.dumps({"number": number}), "--sign", "--identity", alice)
    _, out, _ = tocsin("sub", topic, "--all", "--exit-at-end", "--json")
    good = tmp_path / "good.jsonl"
    good.write_text(out)
    bad = out.replace('{"number": 1}', '{"number": 9}')
    assert bad != out

    assert run(["verify", str(good)]) == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(bad.encode())))
    assert run(["verify", "-"]) == 7
    assert run(["verify", str(good), "--limit", "2"]) == 0
    assert run(["verify", str(tmp_path / "none")]) == 2
    assert run(["verify", str(good), "--after", "1"]) == 2
    (tmp_path / "no-events").write_text("{}\n")
    assert run(["verify", str(tmp_path / "no-events")]) == 1


def test_a_name_is_believed_with_the_authority_that_certified_it(
    tocsin: Call, topic: str, tmp_path: Path, broker: Any
) -> None:
    site, elsewhere = authority(), authority("elsewhere")
    for each, ca in (("ours", site), ("theirs", elsewhere)):
        (tmp_path / f"{each}.pem").write_bytes(ca.pem)
    key = ec.generate_private_key(ec.SECP256R1())
    alice = identity(
        PrivateKey(key), X25519PrivateKey.generate(), made(name("alice"), site, key=key).der
    )
    keep_identity(str(tmp_path / "alice"), alice)
    with Publisher(broker.url, identity=alice) as publisher:
        publisher.publish(topic, {"a": 1})
        publisher.publish_many([(topic, n) for n in range(3)])

    by_name = ("verify", "--filter", f"topic {topic}", "--signer", "alice")

    assert tocsin(*by_name, "--ca-file", str(tmp_path / "ours.pem"))[0] == 0
    assert tocsin(*by_name, "--ca-file", str(tmp_path / "theirs.pem"))[0] == 7
    assert tocsin(*by_name)[0] == 7


def test_programs_sign_too(tocsin: Call, topic: str, alice: str, broker: Any) -> None:
    import asyncio

    async def publish() -> None:
        async with AsyncPublisher(broker.url, identity=alice) as publisher:
            await publisher.publish(topic, {"a": 1}, run="7")
            await publisher.publish_many([(topic, {"b": 2})])

    asyncio.run(publish())
    with Publisher(broker.url, identity=alice, batching=True) as background:
        background.publish(topic, "x", content_type="text/plain")

    _, out, _ = tocsin("verify", "--filter", f"topic {topic}", "--json")

    assert lines(out) == [{"events": 3, "signed": 3, "failed": 0}]


def test_a_page_of_the_log_says_whose_events_are_if_asked(
    tocsin: Call, topic: str, alice: str, broker: Any
) -> None:
    tocsin("pub", topic, "1", "--sign", "--identity", alice)
    tocsin("pub", topic, "2")
    tocsin("pub", topic, "3", "--attr", "signature=forged")
    path = f"/events?filter=topic+{topic}"

    _, plain = broker.call("GET", path)
    _, checked = broker.call("GET", f"{path}&signatures=yes")

    assert "signatures" not in plain
    signed, unsigned, forged = checked["signatures"]
    assert (signed["holds"], signed["name"], signed["certified"]) == (True, "alice", False)
    assert unsigned is None
    assert (forged["holds"], forged["eid"]) == (False, None)
    assert "does not hold" in forged["problem"]


def test_signing_is_refused_where_nothing_would_be_signed(tocsin: Call) -> None:
    code, _, err = tocsin("pub", "--as", "wse", "--topic", "x", "-", "--sign")

    assert code == 2
    assert "--sign cannot be used" in err
