"""LDIF: an independent reader gets back what was written, whatever the names are."""

from __future__ import annotations

import msgspec
import pytest
from directory_entries import S, entry, registration
from hypothesis import example, given
from hypothesis import strategies as st
from ldif_reader import read_ldif, read_name

from tocsin.errors import BadRequest
from tocsin.wire.directory.distinguished import Part, escaped, joined, read_suffix
from tocsin.wire.directory.entry import Offered
from tocsin.wire.directory.ldap import (
    VERSION,
    directory_records,
    generalized_time,
    record,
    schema_ldif,
)
from tocsin.wire.gma.names import EventName

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=200)
HOSTILE = st.text(st.sampled_from(' #,+"\\<>;=:\n\r\t\0aé\U0001f600\u200d'), max_size=12)


@given(st.lists(st.tuples(st.sampled_from(["cn", "description"]), TEXT | HOSTILE), max_size=6))
@example([("cn", " x"), ("cn", "x "), ("cn", ":x"), ("cn", "<x"), ("cn", ""), ("cn", "x: <y")])
@example([("cn", "\n"), ("cn", "a\nb"), ("cn", "a\r"), ("cn", "\0"), ("cn", "é"), ("cn", "#")])
@example([("description", "x" * size) for size in (62, 63, 64, 137, 138, 139)])
def test_every_value_is_read_as_it_was_written(attributes: list[tuple[str, str]]) -> None:
    text = VERSION + record("o=grid", attributes)

    [(name, read)] = read_ldif(text)

    assert name == "o=grid"
    for attribute in ("cn", "description"):
        assert read.get(attribute, []) == [value for each, value in attributes if each == attribute]
    assert text.isascii()
    assert text.endswith("\n")
    assert all(len(line) <= 76 for line in text.split("\n"))


@given(st.lists(TEXT | HOSTILE, min_size=1, max_size=3))
@example([" "])
@example(["  "])
@example(["# "])
@example(["\\"])
@example(["\\ "])
def test_a_distinguished_name_holds_any_value(values: list[str]) -> None:
    name = joined(*(Part("cn", value) for value in values))

    assert read_name(name) == [{"cn": value} for value in values]


@given(TEXT | HOSTILE, st.integers(0, 40))
def test_whatever_an_entry_is_called_it_is_written_right(name: str, events: int) -> None:
    offered = tuple(Offered(EventName(f"E{n}", "urn:lab"), ("Period",)) for n in range(events))
    about = msgspec.structs.replace(registration(name, note=name), events=offered)

    text = "".join(directory_records([entry("a1", about)], read_suffix("dc=ex,dc=org"), "tocsin"))

    dn, attributes = read_ldif(text)[-1]
    assert read_name(dn) == [{"uid": "a1"}, {"ou": "producers"}, {"dc": "ex"}, {"dc": "org"}]
    assert attributes["cn"] == [name]
    assert attributes["uid"] == ["a1"]
    assert attributes.get("tocsinEvent", []) == [f"{{urn:lab}}E{n}" for n in range(events)]
    assert attributes["tocsinAttribute"] == [f"note={name}"]


def test_a_file_has_the_entries_above_before_those_below() -> None:
    entries = [
        entry("b2", registration("uptime", "UptimeCPULoad", site="ohio")),
        entry("c3", registration("archive", kind="consumer", address=None)),
    ]

    read = read_ldif("".join(directory_records(entries, read_suffix("o=Acme\\, Inc."), "standard")))

    assert [dn for dn, _ in read] == [
        "o=Acme\\, Inc.",
        "ou=producers,o=Acme\\, Inc.",
        "ou=consumers,o=Acme\\, Inc.",
        "uid=b2,ou=producers,o=Acme\\, Inc.",
        "uid=c3,ou=consumers,o=Acme\\, Inc.",
    ]
    assert read[0][1]["o"] == ["Acme, Inc."]
    assert read[3][1]["labeledURI"] == ["gma://node7:8401"]
    assert read[3][1]["associatedDomain"] == ["node7"]
    assert read[3][1]["description"] == [
        "event UptimeCPULoad",
        "attribute site = ohio",
        "expires 1970-01-01T00:10:00.000Z",
    ]
    assert "labeledURI" not in read[4][1]


def test_values_that_a_server_takes_for_one_are_written_once() -> None:
    about = registration("uptime", "Load", "load", "{urn:lab}Load")

    def events(form: str, attribute: str) -> list[str]:
        text = "".join(directory_records([entry("a", about)], read_suffix("o=grid"), form))  # type: ignore[arg-type]
        return read_ldif(text)[-1][1][attribute]

    assert events("standard", "description")[:2] == ["event Load", "event {urn:lab}Load"]
    assert events("tocsin", "tocsinEvent") == ["Load", "load", "{urn:lab}Load"]


def test_a_time_is_written_as_ldap_writes_it() -> None:
    assert generalized_time(1_700_000_000 * S + 5) == "20231114221320Z"


def test_the_schema_is_an_entry_of_the_servers_configuration() -> None:
    [(dn, attributes)] = read_ldif(schema_ldif())

    assert dn == "cn=tocsin,cn=schema,cn=config"
    assert len(attributes["olcAttributeTypes"]) == 5
    assert "tocsinOffer" in attributes["olcObjectClasses"][0]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("dc=example,dc=org", [("dc", "example"), ("dc", "org")]),
        (" OU = a b , o=grid ", [("ou", "a b"), ("o", "grid")]),
        ("o=Acme\\, Inc.\\2C c=US", [("o", "Acme, Inc., c=US")]),
        ("o=\\C3\\A9t\\c3\\a9,c=fr", [("o", "été"), ("c", "fr")]),
        ("o=x\\ ", [("o", "x ")]),
        ("o=x\\\\ ", [("o", "x\\")]),
        ("l=here,st=Ohio", [("l", "here"), ("st", "Ohio")]),
    ],
)
def test_a_suffix_is_read_as_people_write_it(text: str, parts: list[tuple[str, str]]) -> None:
    assert read_suffix(text) == tuple(Part(*part) for part in parts)


@given(st.lists(st.tuples(st.sampled_from(["o", "ou", "l", "st"]), TEXT), min_size=1, max_size=4))
def test_a_suffix_that_is_written_is_read_again(parts: list[tuple[str, str]]) -> None:
    wanted = tuple(Part(attribute, value) for attribute, value in parts)
    text = joined(*wanted)

    try:
        read = read_suffix(text)
    except BadRequest:
        assert len(text) > 512 or not all(
            each.value and each.value.isprintable() for each in wanted
        )
        return

    assert read == wanted


@pytest.mark.parametrize(
    "text",
    [
        "example.org",
        "dc=",
        "dc=a b",
        "dc=é",
        "c=USA",
        "cn=x",
        "o=a,",
        ",o=a",
        "o=a;o=b",
        "o=a+ou=b",
        'o="a"',
        "o=\\",
        "o=\\zz",
        "o=\\ff",
        "o=a\nb",
        "o=" + "x" * 600,
        ",".join(["dc=a"] * 17),
    ],
)
def test_a_suffix_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="suffix"):
        read_suffix(text)


def test_escaping_leaves_plain_names_alone() -> None:
    assert escaped("uptime on node7 (é)") == "uptime on node7 (é)"


def test_a_space_that_is_none_is_not_left_out() -> None:
    with pytest.raises(BadRequest):
        read_suffix("o=\x850")
