"""The blackboard without a broker: the operations of paper 004, in one process."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.client.blackboard import InProcessBlackboard, Message, Profile
from tocsin.client.tracking.profile import profile_filter
from tocsin.errors import UnknownConcept
from tocsin.ontology import built_in

AT = "2026-11-16T06:40:00.000Z"


def test_a_subscriber_gets_the_pairs_that_it_asked_for_and_no_others() -> None:
    board = InProcessBlackboard()
    with board.subscribe(["ActivityProblem", "RunId"]) as problems:
        board.publish([Message({"RunId": "r1", "ActivityFailed": AT, "Host": "node7"}, id="1")])
        board.publish([Message({"ActivityExecuting": AT, "Host": "node7"}, id="2")])

        [came] = problems.take(0)

    assert came.message == Message({"RunId": "r1", "ActivityFailed": AT}, id="1")


def test_the_profile_changes_when_and_only_when_somebody_wants_something_else() -> None:
    board = InProcessBlackboard()
    nobody = board.profile()
    first = board.subscribe(["RunId", "Host"])
    one = board.profile()
    second = board.subscribe(["Host"])
    both = board.profile()
    second.close()
    first.close()

    assert nobody.concepts == ()
    assert one.concepts == ("Host", "RunId")
    assert both == one
    assert board.profile().concepts == ()
    assert board.profile().version not in (nobody.version, one.version)


def test_who_waits_for_another_profile_is_woken_by_a_subscriber() -> None:
    board = InProcessBlackboard()
    version = board.profile().version
    waiting = threading.Event()
    reported: list[Profile] = []

    def wait() -> None:
        waiting.set()
        reported.append(board.profile(after=version, wait_s=30))

    watcher = threading.Thread(target=wait)
    watcher.start()
    waiting.wait(30)
    board.subscribe(["RunId"])
    watcher.join(30)

    assert reported[0].concepts == ("RunId",)


def test_what_is_said_again_under_the_same_id_is_delivered_once() -> None:
    board = InProcessBlackboard()
    reported = Message({"RunId": "r1"}, id="1", source="/here")
    with board.subscribe(["RunId"]) as runs:
        assert board.publish([reported]) == 1
        assert board.publish([reported]) == 0

        assert len(runs.take(0)) == 1


def test_an_unknown_concept_is_refused_with_the_nearest_and_nothing_is_delivered() -> None:
    board = InProcessBlackboard()
    with board.subscribe(["RunId"]) as runs:
        with pytest.raises(UnknownConcept, match="ActivityFailed"):
            board.publish([Message({"RunId": "r"}), Message({"ActivityFaild": AT})])
        with pytest.raises(UnknownConcept, match="RunId"):
            board.subscribe(["RunID"])

        assert runs.take(0) == []


CONCEPTS = sorted(built_in().below("ActivityEvent") | built_in().below("Identity"))[:24]
IDENTITY = built_in().below("Identity")


@given(
    asked=st.frozensets(st.sampled_from(CONCEPTS)),
    pairs=st.dictionaries(st.sampled_from(CONCEPTS), st.text(max_size=3)),
)
def test_leaving_out_what_nobody_asked_for_changes_nothing_for_a_subscriber(
    asked: frozenset[str], pairs: dict[str, str]
) -> None:
    message = Message(pairs, id="1")
    thin = profile_filter(Profile(1, tuple(asked)), IDENTITY).apply(message)

    tells = asked & pairs.keys() - IDENTITY
    if thin is None:
        assert not tells
    else:
        assert tells
        assert thin == Message({c: v for c, v in pairs.items() if c in asked}, id="1")


def test_when_everything_is_wanted_nothing_is_left_out() -> None:
    message = Message({"RunId": "r", "Host": "h"})

    assert profile_filter(Profile(1, (), everything=True), IDENTITY).apply(message) is message
