"""WS-Management's pull mode: what was fetched is acknowledged by fetching again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from served import Served, served
from soap.wse_source import Client, publish, subscriptions
from tocsin.wire.soap.names import WSA200408, WSEN
from tocsin.wire.wse.messages import (
    PULL,
    GetStatus,
    GetStatusResponse,
    Pull,
    PullResponse,
    Release,
    Renew,
    Subscribe,
    Unsubscribe,
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def client(broker: Served) -> Client:
    return Client(broker, wsa=WSA200408, path="/wsman")


def context_of(client: Client) -> str:
    context = client.subscribe(None, mode=PULL).context
    assert context is not None
    return context


def pulled(client: Client, asked: Pull) -> PullResponse:
    answer = client.ask(asked)
    message = answer.message
    assert isinstance(message, PullResponse), answer.body
    return message


def test_events_are_pulled_a_few_at_a_time_and_in_order(client: Client) -> None:
    context = context_of(client)
    publish(client.broker, *(f"<e>{number}</e>" for number in range(5)))

    first = pulled(client, Pull(context, 2, time_max="PT5S"))
    second = pulled(client, Pull(first.context or "", 10, time_max="PT5S"))

    assert first.items == (b"<e>0</e>", b"<e>1</e>")
    assert second.items == (b"<e>2</e>", b"<e>3</e>", b"<e>4</e>")
    assert not second.ended


def test_an_answer_that_got_lost_is_given_again(client: Client) -> None:
    context = context_of(client)
    publish(client.broker, "<a/>", "<b/>")
    first = pulled(client, Pull(context, 1, time_max="PT5S"))
    assert first.context is not None

    lost = pulled(client, Pull(first.context, 1, time_max="PT5S"))
    again = pulled(client, Pull(first.context, 1, time_max="PT5S"))

    assert lost.items == again.items == (b"<b/>",)


def test_who_never_changes_its_context_gets_each_event_once(client: Client) -> None:
    context = context_of(client)
    publish(client.broker, "<a/>", "<b/>", "<c/>")

    found = [pulled(client, Pull(context, time_max="PT5S")).items for _ in range(3)]

    assert found == [(b"<a/>",), (b"<b/>",), (b"<c/>",)]
    assert client.ask(Pull(context, time_max="PT0S")).subcode == "TimedOut"


def test_a_pull_waits_for_an_event(client: Client) -> None:
    context = context_of(client)
    later = threading.Timer(0.3, publish, (client.broker, "<late/>"))
    later.start()

    found = pulled(client, Pull(context, time_max="PT10S"))
    later.join()

    assert found.items == (b"<late/>",)


def test_a_wait_that_ends_without_an_event_is_a_fault(client: Client) -> None:
    context = context_of(client)
    started = time.monotonic()

    answer = client.ask(Pull(context, time_max="PT0.4S"))

    assert answer.subcode == "TimedOut"
    assert answer.status == 500
    assert 0.3 < time.monotonic() - started < 5


def test_characters_are_limited_but_one_event_there_is_always(client: Client) -> None:
    context = context_of(client)
    publish(client.broker, "<aaaa/>", "<bbbb/>", "<cccc/>")

    some = pulled(client, Pull(context, 10, 14, "PT5S"))
    few = pulled(client, Pull(some.context or "", 10, 1, "PT5S"))

    assert some.items == (b"<aaaa/>", b"<bbbb/>")
    assert few.items == (b"<cccc/>",)


def test_a_pulled_subscription_is_renewed_and_looked_at_like_any_other(client: Client) -> None:
    made = client.subscribe(None, mode=PULL)

    assert client.ask(Renew("wse04", "PT2H"), to=made.manager).status == 200
    assert isinstance(client.ask(GetStatus("wse04"), to=made.manager).message, GetStatusResponse)


def test_what_was_released_or_ended_is_pulled_no_more(client: Client) -> None:
    before = subscriptions(client.broker)
    released = context_of(client)
    made = client.subscribe(None, mode=PULL)

    answer = client.ask(Release(released))
    client.ask(Unsubscribe("wse04"), to=made.manager)

    assert answer.action == f"{WSEN}/ReleaseResponse"
    assert answer.envelope.content is None
    assert subscriptions(client.broker) == before
    for context in (released, made.context, "nobody", "nobody.x"):
        for asked in (Pull(context or ""), Release(context or "")):
            assert client.ask(asked).subcode == "InvalidEnumerationContext"


def test_a_context_that_was_never_given_is_refused(client: Client) -> None:
    context = context_of(client)

    assert client.ask(Pull(f"{context}.x")).subcode == "InvalidEnumerationContext"
    assert client.ask(Pull(f"{context}.999999999")).subcode == "InvalidEnumerationContext"


def test_one_who_waits_learns_that_the_subscription_is_over(client: Client) -> None:
    made = client.subscribe(None, mode=PULL)
    later = threading.Timer(0.3, client.ask, (Unsubscribe("wse04"),), {"to": made.manager})
    later.start()

    found = pulled(client, Pull(made.context or "", time_max="PT10S"))
    later.join()

    assert found == PullResponse((), ended=True)


def test_who_pulls_gets_no_heartbeats(client: Client) -> None:
    before = subscriptions(client.broker)

    answer = client.ask(Subscribe("wse04", mode=PULL, heartbeats="PT30S"))

    assert answer.subcode == "UnsupportedFeature"
    assert subscriptions(client.broker) == before


def test_what_was_not_acknowledged_survives_a_crash() -> None:
    with served() as broker:
        client = Client(broker, wsa=WSA200408, path="/wsman")
        context = context_of(client)
        publish(broker, "<a/>", "<b/>")
        first = pulled(client, Pull(context, 1, time_max="PT5S"))

        broker.kill()
        broker.start()
        second = pulled(client, Pull(first.context or "", 5, time_max="PT5S"))

        assert (first.items, second.items) == ((b"<a/>",), (b"<b/>",))
