"""What a registration may say, and what is said of one that may not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadRegistration
from tocsin.event.value import Quantity
from tocsin.wire.directory.entry import from_bytes, leased, to_bytes
from tocsin.wire.directory.registration import (
    ATTRIBUTES_MAX,
    EVENTS_MAX,
    read_id,
    read_registration,
)
from tocsin.wire.gma.names import EVENTS, EventName

LEAST: dict[str, Any] = {"kind": "producer", "name": "uptime", "host": "node7"}


def test_the_least_one_must_say_is_what_it_is_and_where() -> None:
    read = read_registration(LEAST)

    assert (read.kind, read.name, read.host, read.address) == ("producer", "uptime", "node7", None)
    assert read.lease_ns == 600 * 10**9


@pytest.mark.parametrize(("name", "shown"), [("kind", '"kind": "producer"'), ("name", '"name":')])
def test_what_is_missing_is_named_and_shown(name: str, shown: str) -> None:
    with pytest.raises(BadRegistration, match=f"{name} is missing") as caught:
        read_registration({key: value for key, value in LEAST.items() if key != name})

    assert shown in caught.value.remedy


def test_events_are_named_as_people_do() -> None:
    asked = ["UptimeCPULoad", "{urn:lab}Temp", "http://example.org/events/Rain"]
    asked += [{"name": "Snow", "namespace": "urn:sky", "parameters": ["Period", "Period"]}]

    read = read_registration({**LEAST, "events": asked})

    assert [offered.name for offered in read.events] == [
        EventName("UptimeCPULoad", EVENTS),
        EventName("Temp", "urn:lab"),
        EventName("Rain", "http://example.org/events"),
        EventName("Snow", "urn:sky"),
    ]
    assert read.events[3].parameters == ("Period",)


@pytest.mark.parametrize(
    ("address", "kept", "host"),
    [
        ("node7:8401", "gma://node7:8401", "node7"),
        ("gmas://node7:8401", "gmas://node7:8401", "node7"),
        ("[::1]:8401", "gma://[::1]:8401", "::1"),
        ("http://me@node7.example.org/gma?x=1", "http://me@node7.example.org/gma?x=1", None),
    ],
)
def test_the_host_is_that_of_the_address_unless_it_is_said(
    address: str, kept: str, host: str | None
) -> None:
    read = read_registration({"kind": "consumer", "name": "archive", "address": address})

    assert read.address == kept
    assert read.host == (host or "node7.example.org")


def test_attributes_keep_their_types_and_units() -> None:
    given_ = {"site": "ohio", "cores": 64, "load": 0.5, "gpu": True}
    memory = {"value": 2, "unit": "GB"}

    read = read_registration({**LEAST, "attributes": {**given_, "memory": memory}})

    assert read.attributes == {**given_, "memory": Quantity(2, "GB")}
    kept = leased("a", read, 5)
    assert from_bytes(to_bytes(kept)) == kept


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"kind": "broker"}, "kind"),
        ({"kind": None}, "kind"),
        ({"name": ""}, "name"),
        ({"name": " "}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 257}, "name"),
        ({"name": 7}, "name"),
        ({"host": "two words"}, "host"),
        ({"host": None}, "host"),
        ({"host": "knöt"}, "host"),
        ({"address": "somewhere"}, "address"),
        ({"address": "gma://a b:1"}, "address"),
        ({"adress": "node7:1"}, "adress"),
        ({"events": "UptimeCPULoad"}, "events"),
        ({"events": [7]}, "events[0]"),
        ({"events": ["A", ""]}, "events[1]"),
        ({"events": ["two words"]}, "events[0]"),
        ({"events": ["{}A"]}, "events[0]"),
        ({"events": ["A", "{http://www.gridforum.org/Performance/Events}A"]}, "events[1]"),
        ({"events": [{"nam": "A"}]}, "events[0].nam"),
        ({"events": [{}]}, "events[0].name"),
        ({"events": [{"name": "A", "namespace": "a b"}]}, "events[0].name"),
        ({"events": [{"name": "A", "parameters": "Period"}]}, "events[0].parameters"),
        ({"events": [{"name": "A", "parameters": ["a\tb"]}]}, "events[0].parameters[0]"),
        ({"events": [f"A{n}" for n in range(EVENTS_MAX + 1)]}, "events"),
        ({"attributes": []}, "attributes"),
        ({"attributes": {"a b": 1}}, "attributes.a b"),
        ({"attributes": {"host": "x"}}, "attributes.host"),
        ({"attributes": {"a": None}}, "attributes.a"),
        ({"attributes": {"a": {"value": 1, "units": "s"}}}, "attributes.a"),
        ({"attributes": {"a": "x" * 1_025}}, "attributes.a"),
        ({"attributes": {"a": 2**63}}, "attributes.a"),
        ({"attributes": {f"a{n}": n for n in range(ATTRIBUTES_MAX + 1)}}, "attributes"),
        ({"lease": "PT9.999S"}, "lease"),
        ({"lease": "P7DT1S"}, "lease"),
        ({"lease": 9}, "lease"),
        ({"lease": -1e300}, "lease"),
        ({"lease": True}, "lease"),
        ({"lease": "soon"}, "lease"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], named: str) -> None:
    with pytest.raises(BadRegistration) as refused:
        read_registration({**LEAST, **change})

    assert refused.value.problem.startswith(f"{named} ")
    assert refused.value.remedy


@pytest.mark.parametrize("entry_id", ["", "A", "~1", "a/b", "a" * 65, ".a", 7])
def test_an_id_is_one_that_addresses_and_ldap_can_have(entry_id: object) -> None:
    with pytest.raises(BadRegistration):
        read_id({"id": entry_id})


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "value", "a"]) | st.text(), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "kind": st.sampled_from(["producer", "consumer"]) | JSON,
            "name": JSON,
            "host": st.just("node7") | JSON,
            "address": st.just("a:1") | JSON,
            "events": st.lists(JSON, max_size=3) | JSON,
            "attributes": JSON,
            "lease": JSON,
        },
    )
)
def test_any_json_is_a_registration_or_is_refused(asked: dict[str, Any]) -> None:
    try:
        read = read_registration(asked)
    except BadRegistration:
        return
    entry = leased("a", read, 5)
    assert from_bytes(to_bytes(entry)) == entry
