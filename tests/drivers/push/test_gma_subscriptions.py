"""The life of a subscription with a gma sink: refused, sent again, changed, moved and deleted."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pytest

from served import Served, served
from tocsin.wire.framing import FrameSplitter, framed
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.read import read
from tocsin.wire.gma.write import write
from waiting import wait_until

WAIT_S = 20.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


class Listener(threading.Thread):
    """A consumer that says no to every offer until it is willing; then it acknowledges."""

    def __init__(self, *, is_willing: bool = True) -> None:
        super().__init__(daemon=True)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"gma://127.0.0.1:{self._server.getsockname()[1]}"
        self.is_willing = is_willing
        self.taken: list[object] = []
        self.ended: list[str] = []
        self.start()

    def run(self) -> None:
        with suppress(OSError):
            while True:
                self._serve(self._server.accept()[0])

    def _serve(self, connection: socket.socket) -> None:
        conversation, splitter = c.Conversation(frozenset({c.CONSUMER})), FrameSplitter(1 << 20)
        with connection:
            while data := connection.recv(1 << 16):
                for frame in splitter.split(data):
                    reply = self._reply(conversation, conversation.receive(read(frame)))
                    connection.sendall(framed(write(reply)))

    def _reply(self, conversation: c.Conversation, happening: c.Received) -> m.Message:
        match happening:
            case c.SubscribeAsked(request=request) if self.is_willing:
                assert request.options is not None
                agreed = m.Options(acknowledge=request.options.acknowledge)
                return conversation.accept(request, agreed=agreed)[0]
            case c.SubscribeAsked(request=request):
                return conversation.refuse(request, "we keep no loads here")
            case c.EventArrived(message=m.EventMessage(event=event, request_id=str(number))):
                assert event is not None
                self.taken.append(event["load"])
                return m.EventReply(number)
            case c.Ended(subscription=subscription, reply=reply):
                self.ended.append(subscription.parameters.name.local)
                return reply
        raise AssertionError(f"a producer does not do this: {happening}")

    def close(self) -> None:
        self._server.close()


def subscribed(broker: Served, sink: str, topic: str, **config: object) -> str:
    asked = {"sink": sink, "filters": [{"topic": topic}], "config": config}
    status, view = broker.call("POST", "/subscriptions", asked)
    assert status == 201, view
    return f"/subscriptions/{view['id']}"


def published(broker: Served, topic: str, *loads: int) -> None:
    broker.publish(*({"type": "Load", "topic": topic, "data": {"load": n}} for n in loads))


def letters(broker: Served, path: str) -> list[dict[str, Any]]:
    query = f"/deadletters?subscription={path.rpartition('/')[2]}"
    found: list[dict[str, Any]] = broker.call("GET", query)[1]["deadletters"]
    return found


def test_what_the_consumer_refuses_becomes_a_dead_letter_with_its_words(broker: Served) -> None:
    with closing(Listener(is_willing=False)) as listener:
        path = subscribed(broker, listener.address, "refused/**", attempts=1)
        published(broker, "refused/a", 1)

        found = wait_until(lambda: letters(broker, path))

        assert "we keep no loads here" in json.dumps(found)
        assert broker.call("GET", path)[1]["dead"] == 1
        broker.call("DELETE", path)


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_dead_letter_is_sent_again_to_a_consumer_that_takes_it_now(
    broker: Served, is_deleted: bool
) -> None:
    topic = f"redriven/{is_deleted}"
    with closing(Listener(is_willing=False)) as listener:
        path = subscribed(broker, listener.address, topic, attempts=1)
        published(broker, topic, 7)
        [letter] = wait_until(lambda: letters(broker, path))
        if is_deleted:
            assert broker.call("DELETE", path)[0] == 204

        refused, answer = broker.call("POST", f"/deadletters/{letter['id']}/redrive")
        listener.is_willing = True
        taken, _ = broker.call("POST", f"/deadletters/{letter['id']}/redrive")

        assert (refused, taken) == (502, 200), answer
        assert "we keep no loads here" in json.dumps(answer)
        assert listener.taken == [7]
        assert letters(broker, path) == []
        if is_deleted:
            wait_until(lambda: listener.ended == ["Load"])
        broker.call("DELETE", path)


def test_a_subscription_that_moves_takes_leave_and_goes_on_elsewhere(broker: Served) -> None:
    with closing(Listener()) as former, closing(Listener()) as latter:
        path = subscribed(broker, former.address, "moved/**")
        published(broker, "moved/a", 1, 2)
        wait_until(lambda: broker.call("GET", path)[1]["delivered"] == 2)
        assert former.taken == [1, 2]

        assert broker.call("PATCH", path, {"sink": latter.address})[0] == 200
        published(broker, "moved/a", 3)

        wait_until(lambda: former.ended == ["Load"])
        wait_until(lambda: latter.taken == [3])
        broker.call("DELETE", path)
        wait_until(lambda: latter.ended == ["Load"])


def test_a_pause_keeps_what_comes_for_later(broker: Served) -> None:
    with closing(Listener()) as listener:
        path = subscribed(broker, listener.address, "paused/**")
        assert broker.call("PATCH", path, {"state": "paused"})[0] == 200
        published(broker, "paused/a", 1, 2)
        time.sleep(0.1)
        assert listener.taken == []

        assert broker.call("PATCH", path, {"state": "active"})[0] == 200

        wait_until(lambda: listener.taken == [1, 2])
        broker.call("DELETE", path)


def test_many_events_may_be_under_way_unless_the_subscriber_says_otherwise(broker: Served) -> None:
    with closing(Listener()) as listener:
        said = [
            subscribed(broker, listener.address, "many/**"),
            subscribed(broker, listener.address, "many/**", batch=1),
        ]
        shown = [broker.call("GET", path)[1]["config"]["batch"] for path in said]

        # A batch of webhooks is another form of message: nobody asked for that.
        moved = broker.call("PATCH", said[0], {"sink": "http://127.0.0.1:9/hook"})[1]

        assert shown == [100, 1]
        assert moved["config"]["batch"] == 1
        for path in said:
            broker.call("DELETE", path)


def test_a_change_is_judged_as_a_new_subscription_is(broker: Served) -> None:
    path = subscribed(broker, "gma://127.0.0.1:9", "changed/**")

    for change in (
        {"sink": "gma://collector.example"},
        {"config": {"mode": "structured"}},
        {"sink": f"gma://{broker.frames}"},
    ):
        assert broker.call("PATCH", path, change)[0] in (400, 403)

    assert broker.call("PATCH", path, {"sink": "gma://localhost:9"})[0] == 200
    assert broker.call("PATCH", path, {"config": {"batch": 7}})[0] == 200
    broker.call("DELETE", path)
