"""What clients ask of subscriptions and boxes: read whole, or refused by name."""

from __future__ import annotations

import json
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadSubscription, TocsinError
from tocsin.event.filter import EVERYTHING
from tocsin.event.subscription import Config, State
from tocsin.wire.api.subscription_request import (
    AfterSeq,
    AfterTime,
    read_box,
    read_change,
    read_subscription,
)

NOW_NS = 1_700_000_000_000_000_000
S = 1_000_000_000
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(["sink", "protocol", "filters", "config", "expires", "state"])


def seal(text: str, about: str) -> str:
    return text


def body(**members: object) -> bytes:
    return json.dumps(members).encode()


def test_a_subscription_of_nothing_but_a_sink_wants_everything_from_now_on() -> None:
    asked = read_subscription(body(sink="http://a/"), NOW_NS, seal)

    assert asked.sink == "http://a/"
    assert asked.filter == EVERYTHING
    assert bytes(asked.filters) == b"[]"
    assert asked.config == Config()
    assert asked.start is None
    assert asked.expires_ns is None


def test_an_empty_body_asks_for_a_box_of_everything() -> None:
    assert read_box(b"", NOW_NS).sink is None
    assert read_box(b" {} ", NOW_NS).filter == EVERYTHING


@pytest.mark.parametrize(
    ("expires", "expires_ns"),
    [
        ("PT10M", NOW_NS + 600 * S),
        ("P1DT0.5S", NOW_NS + 86_400 * S + S // 2),
        ("2030-01-01T00:00:00Z", 1_893_456_000 * S),
        (None, None),
    ],
)
def test_a_lease_ends_at_a_moment_after_a_time_or_never(
    expires: str | None, expires_ns: int | None
) -> None:
    assert read_box(body(expires=expires), NOW_NS).expires_ns == expires_ns


@pytest.mark.parametrize(
    "expires", ["PT0S", "P", "PT", "1999-01-01T00:00:00Z", "10 minutes", "", 600, "P999999W1D"]
)
def test_a_lease_that_is_over_or_none_is_refused(expires: object) -> None:
    with pytest.raises(BadSubscription, match="expires"):
        read_box(body(expires=expires), NOW_NS)


def test_a_subscription_begins_after_a_number_or_a_time() -> None:
    assert read_box(body(config={"from": 42}), NOW_NS).start == AfterSeq(42)
    assert read_box(body(config={"from": "1970-01-01T00:00:01Z"}), NOW_NS).start == AfterTime(S)


def test_a_change_leaves_what_it_does_not_name() -> None:
    was = Config(batch=5, secret=SECRET, timeout_s=2.0)

    change = read_change(body(config={"batch": None, "attempts": 3}), NOW_NS, was, of_box=False)

    assert change.config == Config(batch=1, attempts=3, secret=SECRET, timeout_s=2.0)
    assert change.expires_ns is msgspec.UNSET
    assert change.state is None
    assert change.filter is None


@pytest.mark.parametrize("sink", ["gma://a", "GMAS://a:1"])
def test_more_is_under_way_to_a_gma_sink_unless_it_is_said_otherwise(sink: str) -> None:
    def batch(config: object) -> int:
        return read_subscription(body(sink=sink, config=config), NOW_NS, seal).config.batch

    assert batch(None) == batch({}) == batch({"batch": None}) == 100
    assert batch({"batch": 1}) == 1


@pytest.mark.parametrize(
    ("was", "change", "batch"),
    [
        ("gma://a", {"sink": "http://b/"}, 1),
        ("http://a/", {"sink": "gma://b"}, 100),
        ("http://a/", {"sink": "gma://b", "config": {"batch": 7}}, 7),
        ("gma://a", {"config": {"batch": None}}, 100),
        ("gma://a", {"sink": "gmas://b"}, None),
        ("gma://a", {"state": "paused"}, None),
    ],
)
def test_a_batch_that_meant_something_else_goes_with_the_sink(
    was: str, change: dict[str, object], batch: int | None
) -> None:
    read = read_change(body(**change), NOW_NS, Config(batch=50), of_box=False, sink_was=was)

    assert (read.config and read.config.batch) == batch


def test_a_change_can_pause_move_and_unlimit() -> None:
    change = read_change(
        body(state="paused", sink="http://b/", expires=None), NOW_NS, Config(), of_box=False
    )

    assert change.state is State.PAUSED
    assert change.sink == "http://b/"
    assert change.expires_ns is None


@pytest.mark.parametrize(
    ("members", "of_box", "named"),
    [
        ({}, False, "nothing"),
        ({"state": "pending"}, False, "state"),
        ({"id": "x"}, False, "id"),
        ({"config": {"from": 1}}, False, "config.from"),
        ({"config": {"batch": 2}}, True, "config.batch"),
        ({"sink": "http://a/"}, True, "sink"),
    ],
)
def test_a_change_that_cannot_be_is_refused_by_name(
    members: dict[str, object], of_box: bool, named: str
) -> None:
    with pytest.raises(BadSubscription, match=named):
        read_change(body(**members), NOW_NS, Config(), of_box=of_box)


@given(st.dictionaries(KEYS | st.text(max_size=5), JSON))
def test_any_json_is_read_or_refused_with_an_error_of_ours(members: dict[str, object]) -> None:
    data = json.dumps(members).encode()
    for read in (
        lambda: read_subscription(data, NOW_NS, seal),
        lambda: read_box(data, NOW_NS),
        lambda: read_change(data, NOW_NS, Config(), of_box=False),
    ):
        with suppress(TocsinError):
            read()


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_with_an_error_of_ours(data: bytes) -> None:
    with suppress(TocsinError):
        read_box(data, NOW_NS)
