"""Filters of every dialect; and how long a subscription is granted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.event.instant import NS_PER_S
from tocsin.wire.soap.addressing import Versions
from tocsin.wire.soap.expiry import read_expiry, write_expiry
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import (
    TOPIC_AND_XPATH,
    TOPICS10_SIMPLE,
    TOPICS13,
    WSA2005,
    WSE04,
    WSE11,
    XPATH10,
    XPATH10_WSE11,
)
from tocsin.wire.wse.expiry import LEASE_NS_DEFAULT, LEASE_NS_MAX, granted
from tocsin.wire.wse.filters import ACTIONS_MAX, to_filters
from tocsin.wire.wse.messages import Filter
from tocsin.wire.wsn.messages import Expression

VERSIONS = Versions("1.2", WSA2005)
NOW_NS = 1_800_000_000 * NS_PER_S
WQL = "http://schemas.microsoft.com/wbem/wsman/1/WQL"
DPWS = "http://docs.oasis-open.org/ws-dd/ns/dpws/2009/01/Action"
P = (("p", "urn:p"),)


def filters(text: str, dialect: str = "", spec: str = "wse04", **parts: Expression) -> list[object]:
    return to_filters(Filter(Expression(text, dialect, P), **parts), spec, VERSIONS)


def refused(text: str, dialect: str = "", spec: str = "wse04", **parts: Expression) -> str | None:
    with pytest.raises(SoapFault) as caught:
        filters(text, dialect, spec, **parts)
    assert caught.value.code == "Sender"
    return caught.value.subcode[1] if caught.value.subcode else None


def test_without_a_filter_everything_is_wanted() -> None:
    assert to_filters(None, "wse04", VERSIONS) == []


def test_in_2004_an_xpath_may_look_at_the_envelope_as_it_will_be_sent() -> None:
    expected = {
        "expression": "/p:a",
        "namespaces": {"p": "urn:p"},
        "on": "envelope",
        "soap": "1.2",
        "wsa": WSA2005,
    }

    assert filters("/p:a") == filters("/p:a", XPATH10) == [{"xpath": expected}]


def test_in_2011_an_xpath_looks_at_the_payload_unless_it_names_the_envelope() -> None:
    plain = {"expression": "/p:a", "namespaces": {"p": "urn:p"}, "on": "payload"}

    for dialect in ("", XPATH10, XPATH10_WSE11):
        assert filters("/p:a", dialect, "wse11") == [{"xpath": plain}]
    [whole] = filters("/p:Envelope/p:Body", "", "wse11")
    assert isinstance(whole, dict)
    assert whole["xpath"]["on"] == "envelope"


def test_topics_are_asked_for_in_every_dialect() -> None:
    everywhere = [{"topic": "a/**"}]

    assert filters("p:a", TOPICS10_SIMPLE) == [{"topic": "a"}]
    assert filters(">", TOPICS10_SIMPLE) == []
    assert filters("a//.", f"{TOPICS13}/TopicExpression/Full") == everywhere
    named = filters("p:a/b", f"{TOPICS13}/TopicExpression/Concrete")
    assert named[0] == {"topic": "a/b"}
    assert "urn:p" in str(named[1])


def test_either_half_of_topic_and_content_may_lack() -> None:
    topic, content = Expression("p:a", TOPICS10_SIMPLE, P), Expression("/c", XPATH10)

    both = filters("", TOPIC_AND_XPATH, topic=topic, content=content)

    assert filters("", TOPIC_AND_XPATH, topic=topic) == both[:1]
    assert filters("", TOPIC_AND_XPATH, content=content) == both[1:]
    assert refused("", TOPIC_AND_XPATH) == "InvalidMessage"
    strange = Expression("/c", "urn:d")
    assert refused("", TOPIC_AND_XPATH, content=strange) == "FilteringRequestedUnavailable"


def test_unknown_dialects_are_refused() -> None:
    for dialect in (WQL, "urn:mine"):
        for spec in ("wse04", "wse11"):
            assert refused("select * from a", dialect, spec) == "FilteringRequestedUnavailable"


def test_what_lets_nothing_pass_is_refused() -> None:
    for text, dialect in (("", ""), ("false()", ""), ("", DPWS), ("", TOPICS10_SIMPLE)):
        assert refused(text, dialect, "wse11") == "EmptyFilter"
        assert refused(text, dialect, "wse04") == "InvalidMessage"


def test_what_is_no_expression_is_refused() -> None:
    full = f"{TOPICS13}/TopicExpression/Full"
    many = " ".join(f"urn:{number}" for number in range(ACTIONS_MAX + 1))

    for text, dialect in (("a[1]", full), (many, DPWS)):
        assert refused(text, dialect, "wse11") == "CannotProcessFilter"
        assert refused(text, dialect, "wse04") == "InvalidMessage"


def late(spec: str, asked: str, *, best_effort: bool = False) -> tuple[str, str] | None:
    with pytest.raises(SoapFault) as caught:
        granted(spec, asked, NOW_NS, best_effort=best_effort)
    return caught.value.subcode


@given(st.integers(1, LEASE_NS_MAX // 1_000_000), st.sampled_from(["duration", "dateTime"]))
def test_what_is_granted_is_what_was_asked_for_to_the_millisecond(
    milliseconds: int, kind: str
) -> None:
    end_ns = NOW_NS + milliseconds * 1_000_000

    for spec in ("wse04", "wse11"):
        expiry = granted(spec, write_expiry(end_ns, NOW_NS, kind), NOW_NS)

        assert (expiry.expires_ns, expiry.kind) == (end_ns, kind)
        assert read_expiry(write_expiry(expiry.expires_ns, NOW_NS, kind), NOW_NS) == expiry


def test_milliseconds_are_the_originals_and_so_only_of_2004() -> None:
    expiry = granted("wse04", "259200000", NOW_NS)

    assert expiry.expires_ns == NOW_NS + 3 * 86_400 * NS_PER_S
    assert write_expiry(expiry.expires_ns, NOW_NS, expiry.kind).endswith("Z")
    assert late("wse11", "259200000") == (WSE11, "UnsupportedExpirationType")


def test_who_names_no_end_gets_a_long_lease() -> None:
    assert granted("wse11", None, NOW_NS).expires_ns == NOW_NS + LEASE_NS_DEFAULT


@pytest.mark.parametrize("asked", ["PT0S", "-PT5M", "2001-01-01T00:00:00Z"])
def test_an_end_that_is_over_is_refused(asked: str) -> None:
    assert late("wse04", asked) == (WSE04, "InvalidExpirationTime")
    assert late("wse11", asked) == (WSE11, "UnsupportedExpirationValue")
    assert late("wse11", asked, best_effort=True) == (WSE11, "UnsupportedExpirationValue")


@pytest.mark.parametrize("asked", ["", "soon", "P", "2030-13-45T00:00:00Z", "P" + "9" * 99 + "Y"])
def test_what_is_no_time_is_refused(asked: str) -> None:
    for spec, namespace in (("wse04", WSE04), ("wse11", WSE11)):
        assert late(spec, asked) == (namespace, "UnsupportedExpirationType")


def test_an_absurd_end_is_cut_short_for_those_who_allow_it() -> None:
    longest = NOW_NS + LEASE_NS_MAX

    assert granted("wse04", "P999999Y", NOW_NS).expires_ns == longest
    assert granted("wse11", "P999999Y", NOW_NS, best_effort=True).expires_ns == longest
    assert late("wse11", "P999999Y") == (WSE11, "UnsupportedExpirationValue")
