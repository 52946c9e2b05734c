"""The blackboard as a service: the aggregate profile, publishers that are sent it, subscribers."""

from __future__ import annotations

import json

import pytest

from manual_runtime import NO_CONTENT, ManualRuntime
from tocsin.access.session import anonymous
from tocsin.broker.runtime import HttpAnswer
from tocsin.errors import NoSuchPublisher, TooManySubscriptions
from tocsin.event.subscription import State
from tocsin.services.blackboard import board as board_module
from tocsin.services.blackboard.board import DELAY_S_MAX, FORGET_AFTER_S, Board
from tocsin.services.blackboard.subscribers import Subscribers

CLIENT = anonymous("http", "192.0.2.1:1")
PUBLISHER = "http://publisher.example/profile"
SINK = "http://sink.example/messages"


def want(runtime: ManualRuntime, board: Board, *concepts: str) -> None:
    """Somebody subscribes to these, and the board hears of it."""
    subscribers = Subscribers(runtime.port)
    runtime.run(subscribers.subscribe(CLIENT, SINK, list(concepts)))
    board.interest_changed()
    runtime.settle()


def versions(runtime: ManualRuntime) -> list[int]:
    return [json.loads(body)["version"] for _, body in runtime.posts]


def is_listed(board: Board) -> bool:
    [publisher] = board.publishers(CLIENT)
    return publisher.away_since_s is None


def test_a_publisher_is_sent_the_profile_when_and_only_when_it_changes() -> None:
    runtime = ManualRuntime()
    board = Board(runtime.port)
    runtime.run(board.register(CLIENT, PUBLISHER))
    assert runtime.posts == []  # it has the profile in the answer

    want(runtime, board, "RunId")
    want(runtime, board, "RunId")
    want(runtime, board, "RunId", "ExitCode")

    assert versions(runtime) == sorted(set(versions(runtime)))
    assert len(runtime.posts) == 2
    assert {url for url, _ in runtime.posts} == {PUBLISHER}


def test_a_publisher_that_is_away_is_asked_ever_more_rarely_and_gets_the_latest_profile() -> None:
    runtime = ManualRuntime()
    board = Board(runtime.port)
    runtime.run(board.register(CLIENT, PUBLISHER))
    runtime.on_post = lambda url, body: HttpAnswer(503, {}, b"")
    want(runtime, board, "RunId")
    assert not is_listed(board)
    runtime.pass_s(3_600.0)
    asked = len(runtime.posts)
    assert 10 < asked < 25
    want(runtime, board, "ExitCode")

    runtime.on_post = lambda url, body: NO_CONTENT
    runtime.pass_s(DELAY_S_MAX)

    assert is_listed(board)
    assert len(runtime.posts) == asked + 1
    assert versions(runtime)[-1] == board.profile.version


def test_a_publisher_that_never_comes_back_is_forgotten() -> None:
    runtime = ManualRuntime()
    board = Board(runtime.port)
    runtime.run(board.register(CLIENT, PUBLISHER))
    runtime.on_post = lambda url, body: HttpAnswer(503, {}, b"")
    want(runtime, board, "RunId")

    runtime.pass_s(FORGET_AFTER_S + 2 * DELAY_S_MAX)

    assert board.publishers(CLIENT) == []
    assert Board(runtime.restarted().port).publishers(CLIENT) == []


def test_publishers_are_on_the_list_after_a_restart_and_are_sent_the_profile() -> None:
    runtime = ManualRuntime()
    board = Board(runtime.port)
    registered = runtime.run(board.register(CLIENT, PUBLISHER))
    want(runtime, board, "RunId")

    after = runtime.restarted()
    again = Board(after.port)
    after.settle()

    [publisher] = again.publishers(CLIENT)
    assert publisher.registered == registered
    assert versions(after) == [again.profile.version]


def test_of_two_that_register_one_address_at_once_the_second_finds_the_first() -> None:
    runtime = ManualRuntime()
    board = Board(runtime.port)

    one, other = runtime.run_all(
        board.register(CLIENT, PUBLISHER), board.register(CLIENT, PUBLISHER)
    )

    assert one == other
    assert len(board.publishers(CLIENT)) == 1


def test_there_is_a_limit_to_the_publishers_of_one_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_module, "PUBLISHERS_PER_HOST_MAX", 2)
    runtime = ManualRuntime()
    board = Board(runtime.port)
    for number in range(2):
        runtime.run(board.register(CLIENT, f"{PUBLISHER}/{number}"))

    with pytest.raises(TooManySubscriptions, match=r"publisher\.example"):
        runtime.run(board.register(CLIENT, f"{PUBLISHER}/2"))

    runtime.run(board.register(CLIENT, "http://other.example/"))


def test_who_is_unregistered_is_sent_nothing_more() -> None:
    runtime = ManualRuntime()
    board = Board(runtime.port)
    registered = runtime.run(board.register(CLIENT, PUBLISHER))
    runtime.run(board.unregister(CLIENT, registered.id))

    want(runtime, board, "RunId")

    assert runtime.posts == []
    with pytest.raises(NoSuchPublisher):
        runtime.run(board.unregister(CLIENT, registered.id))


def test_who_waits_for_a_profile_gets_the_next_one_or_the_same_when_the_wait_is_over() -> None:
    runtime = ManualRuntime()
    board = Board(runtime.port)
    version = board.profile.version

    same = runtime.run(board.profile_after(CLIENT, version, 10.0))
    assert same.version == version

    waiting = runtime.spawn(board.profile_after(CLIENT, version, 1e9))
    runtime.settle()
    want(runtime, board, "RunId")
    runtime.settle()
    assert waiting.result.version > version


def test_a_broker_that_stops_does_not_say_that_its_readers_left() -> None:
    runtime = ManualRuntime()
    board = Board(runtime.port)
    runtime.run(board.register(CLIENT, PUBLISHER))
    want(runtime, board, "RunId")
    sent = len(runtime.posts)
    [view] = runtime.port.views(CLIENT)
    runtime.run(runtime.port.unsubscribe(CLIENT, view.subscription.id))

    runtime.is_stopping = True
    board.interest_changed()
    runtime.settle()

    assert len(runtime.posts) == sent


def test_a_subscriber_is_known_by_its_address() -> None:
    runtime = ManualRuntime()
    subscribers = Subscribers(runtime.port)
    first, is_new = runtime.run(subscribers.subscribe(CLIENT, SINK, ["RunId"]))
    assert is_new

    again, is_new = runtime.run(subscribers.subscribe(CLIENT, SINK, ["ExitCode"]))

    assert not is_new
    assert again.subscription.id == first.subscription.id
    assert json.loads(bytes(again.subscription.filters)) == [{"concepts": ["ExitCode"]}]
    assert again.subscription.state is State.ACTIVE
    runtime.run(subscribers.unsubscribe(CLIENT, SINK))
    with pytest.raises(NoSuchPublisher):
        runtime.run(subscribers.unsubscribe(CLIENT, SINK))


def test_of_two_subscribers_with_one_address_at_once_there_is_one() -> None:
    runtime = ManualRuntime()
    subscribers = Subscribers(runtime.port)

    runtime.run_all(
        subscribers.subscribe(CLIENT, SINK, ["RunId"]),
        subscribers.subscribe(CLIENT, SINK, ["ExitCode"]),
    )

    [view] = subscribers.views(CLIENT)
    assert json.loads(bytes(view.subscription.filters)) == [{"concepts": ["ExitCode"]}]
