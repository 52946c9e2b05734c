"""Subscriptions and boxes by REST, without a socket: what is checked, found, listed and fetched."""

from __future__ import annotations

import json

import pytest

from manual_runtime import ManualRuntime
from tocsin.access.session import anonymous
from tocsin.broker.delivery.address import SinkAddress
from tocsin.broker.delivery.trust import SinkRules
from tocsin.drivers.push.sinks import built_in_sinks
from tocsin.errors import (
    BadRequest,
    BadSubscription,
    BadToken,
    NoSuchBox,
    NoSuchSubscription,
    SinkRefused,
)
from tocsin.event.event import Event
from tocsin.event.subscription import Kind
from tocsin.services.subscriptions.subscriptions import Subscriptions, read_pull

CLIENT = anonymous("http", "192.0.2.1:1")
SINK = "https://sink.example/hook"


def check_not_ourselves(address: SinkAddress) -> None:
    if address.host == "ourselves.example":
        raise SinkRefused("that is this broker itself", remedy="Name another.")


def seal(text: str, about: str) -> str:
    return f"for {about}: {text[::-1]}"


def service(runtime: ManualRuntime, *, allow_private: bool = False) -> Subscriptions:
    rules = SinkRules(allow_private=allow_private, trusted=())
    return Subscriptions(runtime.port, built_in_sinks(), rules, check_not_ourselves, seal)


def body(**members: object) -> bytes:
    return json.dumps(members).encode()


def publish(runtime: ManualRuntime, *numbers: int) -> None:
    events = [Event(id=str(n), source="/test", type="test", topic="a/b") for n in numbers]
    runtime.run(runtime.port.publish(CLIENT, events))


@pytest.mark.parametrize(
    ("sink", "error"),
    [
        ("http://ourselves.example/events", SinkRefused),
        ("http://169.254.169.254/latest", SinkRefused),
        ("http://10.0.0.1/hook", SinkRefused),
        ("http://localhost:9000/hook", SinkRefused),
        ("gma://untrusted.example:8401", SinkRefused),
        ("ftp://sink.example/", BadSubscription),
    ],
)
def test_a_sink_that_would_be_refused_at_every_push_is_refused_at_once(
    sink: str, error: type[Exception]
) -> None:
    runtime = ManualRuntime()

    with pytest.raises(error):
        runtime.run(service(runtime).create(CLIENT, body(sink=sink)))

    assert runtime.port.views(CLIENT) == []


def test_a_changed_sink_is_checked_like_a_new_one() -> None:
    runtime = ManualRuntime()
    subscriptions = service(runtime)
    made = runtime.run(subscriptions.create(CLIENT, body(sink=SINK))).subscription
    change = body(sink="http://10.0.0.1/hook")

    with pytest.raises(SinkRefused):
        runtime.run(subscriptions.change(CLIENT, made.id, change))

    assert subscriptions.find(CLIENT, made.id).subscription.sink == SINK


def test_a_box_is_no_subscription_and_a_subscription_no_box() -> None:
    runtime = ManualRuntime()
    subscriptions = service(runtime)
    push = runtime.run(subscriptions.create(CLIENT, body(sink=SINK))).subscription.id
    box = runtime.run(subscriptions.create_box(CLIENT, b"{}")).subscription.id

    with pytest.raises(NoSuchSubscription, match="message box"):
        subscriptions.find(CLIENT, box)
    with pytest.raises(NoSuchBox):
        subscriptions.find_box(CLIENT, push)
    with pytest.raises(NoSuchSubscription):
        runtime.run(subscriptions.delete(CLIENT, box))
    with pytest.raises(NoSuchBox):
        runtime.run(subscriptions.delete_box(CLIENT, push))


def test_a_handshake_needs_the_token_that_the_sink_was_sent() -> None:
    runtime = ManualRuntime(trusts_sinks=False)
    subscriptions = service(runtime)
    made = runtime.run(subscriptions.create(CLIENT, body(sink=SINK))).subscription
    assert made.state.value == "pending"

    with pytest.raises(BadToken):
        subscriptions.confirm(made.id, "guessed", {}, "broker.example")
    subscriptions.confirm(made.id, runtime.handshakes[-1].token, {}, "broker.example")

    assert subscriptions.find(CLIENT, made.id).subscription.state.value == "active"


def test_what_a_box_handed_out_comes_again_until_it_is_acknowledged() -> None:
    runtime = ManualRuntime()
    subscriptions = service(runtime)
    box = runtime.run(subscriptions.create_box(CLIENT, b"{}")).subscription.id
    publish(runtime, 1, 2, 3)

    first = runtime.run(subscriptions.pull(CLIENT, box, read_pull(b"max=2")))
    again = runtime.run(subscriptions.pull(CLIENT, box, read_pull(b"max=2")))
    rest = runtime.run(subscriptions.pull(CLIENT, box, read_pull(f"ack={again.next}".encode())))

    assert [stored.seq for stored in first.events] == [1, 2]
    assert again.events == first.events
    assert [stored.seq for stored in rest.events] == [3]


def test_a_pull_that_waits_is_answered_by_the_next_event_or_when_the_wait_is_over() -> None:
    runtime = ManualRuntime()
    subscriptions = service(runtime)
    box = runtime.run(subscriptions.create_box(CLIENT, b"{}")).subscription.id

    began_s = runtime.elapsed_s()
    empty = runtime.run(subscriptions.pull(CLIENT, box, read_pull(b"wait=5")))
    assert (empty.events, runtime.elapsed_s() - began_s) == ([], pytest.approx(5.0))
    waiting = runtime.spawn(subscriptions.pull(CLIENT, box, read_pull(b"wait=60")))
    runtime.settle()
    assert not waiting.is_done
    publish(runtime, 1)
    assert [stored.seq for stored in waiting.result.events] == [1]


@pytest.mark.parametrize("query", [b"max=0", b"max=1001", b"wait=61", b"wait=-1", b"most=3"])
def test_a_pull_has_limits(query: bytes) -> None:
    with pytest.raises(BadRequest):
        read_pull(query)


def test_a_box_begins_where_it_was_asked_to() -> None:
    runtime = ManualRuntime()
    subscriptions = service(runtime)
    publish(runtime, 1, 2)
    runtime.pass_s(10.0)
    moment = "2023-11-14T22:13:25Z"  # five seconds after the beginning
    publish(runtime, 3)

    for start, expected in ((0, [1, 2, 3]), (1, [2, 3]), (moment, [3])):
        made = runtime.run(subscriptions.create_box(CLIENT, body(config={"from": start})))
        pulled = runtime.run(subscriptions.pull(CLIENT, made.subscription.id, read_pull(b"wait=1")))
        assert [stored.seq for stored in pulled.events] == expected


def test_a_long_list_comes_in_pages_and_by_text() -> None:
    runtime = ManualRuntime()
    subscriptions = service(runtime)
    for number in range(5):
        sink = f"https://sink{number}.example/"
        runtime.run(subscriptions.create(CLIENT, body(sink=sink)))
    runtime.run(subscriptions.create_box(CLIENT, b"{}"))

    seen: list[str | None] = []
    after: str | None = ""
    while after is not None:
        query = f"limit=2&after={after}" if after else "limit=2"
        page = subscriptions.page(CLIENT, query.encode(), Kind.PUSH)
        seen += [view.subscription.sink for view in page.views]
        after = page.next
    assert seen == [f"https://sink{number}.example/" for number in range(5)]
    assert page.total == 5
    found = subscriptions.page(CLIENT, b"q=SINK3", Kind.PUSH)
    assert [view.subscription.sink for view in found.views] == ["https://sink3.example/"]
    assert subscriptions.page(CLIENT, b"", Kind.BOX).total == 1
