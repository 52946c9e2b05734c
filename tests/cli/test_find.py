"""`tocsin find` against a real broker, as a shell script would use it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator

import pytest

from served import Served
from tocsin.client.directory import Directory
from tocsin.errors import BrokerRefused

Tocsin = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tocsin(broker: Served, in_process: Tocsin) -> Tocsin:
    """Runs `tocsin find` in this process; its exit code, output and errors."""
    return lambda *arguments: in_process("find", *arguments, "--broker", broker.url)


@pytest.fixture
def host(broker: Served) -> Iterator[str]:
    """A machine where two producers and a consumer run."""
    name = f"node-{os.urandom(4).hex()}"
    with Directory(broker.url) as directory:
        entries = [
            directory.register(
                "producer",
                "uptime",
                address=f"{name}:8401",
                events=["UptimeCPULoad", {"name": "Temp", "namespace": "urn:lab"}],
                attributes={"cores": 64, "note": "two\nlines \x1b[31m"},
                lease_s=3_600,
            ),
            directory.register(
                "producer", "many", host=name, events=[f"E{n}" for n in range(9)], lease_s=36_000
            ),
            directory.register("consumer", "archive", address=f"gmas://{name}:8402"),
        ]
        yield name
        for entry in entries:
            directory.withdraw(entry.id)


def test_a_person_gets_a_table(tocsin: Tocsin, host: str) -> None:
    code, out, words = tocsin("producers", "--host", host)

    rows = [line.split() for line in out.splitlines()]
    assert code == 0
    assert rows[0] == ["name", "kind", "host", "address", "events", "expires", "in"]
    assert rows[1][:4] == ["many", "producer", host, "-"]
    assert rows[1][4:] == ["E0,", "E1,", "E2", "and", "6", "more", "10h"]
    assert rows[2][:4] == ["uptime", "producer", host, f"gma://{host}:8401"]
    assert rows[2][4:] == ["UptimeCPULoad,", "{urn:lab}Temp", "60m"]
    assert words == "2 entries\n"


def test_consumers_are_found_apart_from_producers(tocsin: Tocsin, host: str) -> None:
    code, out, words = tocsin("consumers", "--host", host)

    rows = [line.split() for line in out.splitlines()]
    assert code == 0
    assert rows[1:] == [["archive", "consumer", host, f"gmas://{host}:8402", "-", "10m"]]
    assert words == "1 entry\n"


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["producers"], ["many", "uptime"]),
        (["consumers"], ["archive"]),
        (["producers", "--event", "UptimeCPULoad"], ["uptime"]),
        (["producers", "--event", "{urn:lab}Temp"], ["uptime"]),
        (["producers", "cores >= 16"], ["uptime"]),
        (["producers", "name prefix u or name = many"], ["many", "uptime"]),
    ],
)
def test_a_program_gets_one_entry_a_line(
    tocsin: Tocsin, host: str, arguments: list[str], found: list[str]
) -> None:
    code, out, _ = tocsin(*arguments, "--host", host, "--json")

    entries = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [entry["name"] for entry in entries] == found
    assert {entry["host"] for entry in entries} == {host}


@pytest.mark.parametrize("how", [[], ["--json"], ["--ldif"]])
def test_nothing_found_is_exit_code_five_and_no_data(tocsin: Tocsin, how: list[str]) -> None:
    code, out, words = tocsin("producers", "--host", "nowhere", *how)

    assert (code, out) == (5, "")
    assert "no entry" in words


def test_ldif_goes_to_stdout_and_is_plain_ascii(tocsin: Tocsin, host: str) -> None:
    code, out, _ = tocsin("producers", "--host", host, "--ldif", "--suffix", "dc=example,dc=org")

    assert code == 0
    assert out.startswith("version: 1\n\ndn: dc=example,dc=org\n")
    assert out.count("\nuid: ") == 2
    assert all(line.isascii() and line.isprintable() for line in out.split("\n"))


def test_ldif_can_use_our_schema(tocsin: Tocsin, host: str) -> None:
    code, out, _ = tocsin("producers", "--host", host, "--ldif", "--schema", "tocsin")

    assert code == 0
    assert "\ntocsinEvent: {urn:lab}Temp\n" in out


def test_what_says_how_ldif_is_written_is_refused_without_it(tocsin: Tocsin) -> None:
    code, out, words = tocsin("producers", "--suffix", "o=grid")

    assert (code, out) == (2, "")
    assert "--ldif" in words


def test_two_forms_at_once_are_refused(tocsin: Tocsin) -> None:
    code, out, words = tocsin("producers", "--ldif", "--json")

    assert (code, out) == (2, "")
    assert "--ldif and --json" in words


def test_what_a_hostile_broker_says_steers_no_terminal(
    tocsin: Tocsin, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "dn: x\x1b[2J\x9b31m\u202e\n"
    monkeypatch.setattr(Directory, "ldif", lambda self, **_: evil)
    _, out, _ = tocsin("producers", "--host", host, "--ldif")

    assert out == "dn: x\\u001b[2J\\u009b31m\\u202e\n"


def test_a_bad_filter_is_pointed_at(tocsin: Tocsin) -> None:
    code, out, words = tocsin("producers", "cores >> 16")

    assert (code, out) == (1, "")
    assert "cores >> 16\n        ^" in words


def test_a_withdrawn_entry_cannot_be_renewed(broker: Served) -> None:
    with Directory(broker.url) as directory:
        entry = directory.register("producer", "brief", host="here", lease_s=10)
        assert directory.renew(entry.id).expires >= (entry.expires or "")
        directory.withdraw(entry.id)

        with pytest.raises(BrokerRefused) as refused:
            directory.renew(entry.id)

    assert refused.value.broker_code == "T311"


def test_a_long_answer_is_fetched_page_by_page(
    broker: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.client.directory.PAGE_MAX", 2)
    with Directory(broker.url) as directory:
        ids = [directory.register("producer", f"n{n}", host="paged").id for n in range(5)]

        found = [entry.id for entry in directory.look_up(host="paged")]
        first = [entry.id for entry in directory.look_up(host="paged", limit=3)]
        for each in ids:
            directory.withdraw(each)

    assert found == sorted(ids)
    assert first == sorted(ids)[:3]
