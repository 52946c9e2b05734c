"""What services keep is on disk when they are told so, comes back after a crash, and is bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.harness import Hand, answer_to, event, only
from tocsin.broker.effects import Accepted, Commit
from tocsin.broker.options import BrokerOptions
from tocsin.errors import DiskFailed, DiskFull, TooMuchKept

FULL = DiskFull("the disk is full", remedy="Make room.")


def keep(hand: Hand, key: str, value: bytes | None) -> object:
    return hand.ask(lambda token: hand.broker.keep({key: value}, token))


def test_a_value_is_there_once_it_is_acknowledged_and_after_a_crash() -> None:
    hand = Hand()

    assert keep(hand, "a/1", b"one") is None
    assert keep(hand, "b/1", b"two") is None

    for broker in (hand.broker, hand.crash().broker):
        assert broker.kept("a/") == {"a/1": b"one"}
        assert broker.kept("") == {"a/1": b"one", "b/1": b"two"}


def test_a_removed_value_is_gone_for_good() -> None:
    hand = Hand()
    keep(hand, "a", b"one")

    assert keep(hand, "a", None) is None
    assert keep(hand, "never", None) is None

    assert hand.broker.kept("") == hand.crash().broker.kept("") == {}


def test_nothing_is_said_before_the_disk_has_it() -> None:
    hand = Hand()
    hand.broker.keep({"a": b"one"}, "token")
    effects = hand.flush()
    assert hand.broker.kept("") == {}
    (commit,) = only(Commit, effects)
    assert effects == [commit]
    hand.do(commit)

    assert answer_to("token", hand.flush()) is None
    assert hand.broker.kept("") == {"a": b"one"}


def test_a_publish_of_the_same_turn_shares_the_commit() -> None:
    hand = Hand()
    hand.broker.publish([event(1)], "publish")
    hand.broker.keep({"a": b"one"}, "keep")
    effects = hand.settle()

    (commit,) = only(Commit, effects)
    assert commit.append.offers == [[event(1)]]
    assert commit.change.service_state == {"a": b"one"}
    assert isinstance(answer_to("publish", effects), Accepted)
    assert answer_to("keep", effects) is None


def test_the_last_of_one_turn_holds() -> None:
    hand = Hand()
    for token, value in enumerate((b"one", None, b"two")):
        hand.broker.keep({"a": value}, token)
    hand.settle()

    assert hand.broker.kept("") == hand.kept == {"a": b"two"}


def test_what_a_full_disk_refused_is_not_kept() -> None:
    hand = Hand()
    keep(hand, "old", b"value")
    hand.broker.keep({"new": b"value"}, "keep")
    hand.broker.keep({"old": None}, "remove")
    hand.flush()
    hand.broker.commit_failed(FULL, hand.now)
    effects = hand.settle() + hand.pass_s(5)

    assert answer_to("keep", effects) is FULL
    assert answer_to("remove", effects) is FULL
    assert hand.broker.kept("") == hand.kept == {"old": b"value"}
    assert keep(hand, "new", b"again") is None


def test_when_the_disk_fails_everybody_who_waits_is_told() -> None:
    hand = Hand()
    failed = DiskFailed("no", remedy=".")
    hand.broker.keep({"a": b""}, "under way")
    hand.flush()
    hand.broker.keep({"b": b""}, "waiting")
    hand.broker.commit_failed(failed, hand.now)
    effects = hand.flush()

    assert answer_to("under way", effects) is failed
    assert answer_to("waiting", effects) is failed


def test_the_number_of_values_is_limited() -> None:
    hand = Hand(BrokerOptions(kept_max=2))
    keep(hand, "a", b"")
    hand.broker.keep({"b": b""}, "b")
    hand.broker.keep({"c": b""}, "c")
    effects = hand.settle()

    assert answer_to("b", effects) is None
    assert isinstance(answer_to("c", effects), TooMuchKept)
    assert keep(hand, "b", b"other") is None
    assert keep(hand, "a", None) is None
    assert keep(hand, "c", b"") is None
    assert isinstance(keep(hand, "d", b""), TooMuchKept)
    assert set(hand.broker.kept("")) == set(hand.kept) == {"b", "c"}


def test_the_bytes_are_limited_also_after_a_crash() -> None:
    hand = Hand(BrokerOptions(kept_bytes_max=10))
    keep(hand, "a", b"12345")
    again = hand.crash()

    assert isinstance(keep(again, "b", b"12345"), TooMuchKept)
    assert keep(again, "b", b"123") is None
    assert isinstance(keep(again, "b", b"1234"), TooMuchKept)
    assert keep(again, "a", b"") is None
    assert keep(again, "b", b"1234") is None


def test_no_service_takes_the_room_of_another() -> None:
    hand = Hand(BrokerOptions(kept_max=2, kept_bytes_max=100))
    for number in range(2):
        assert keep(hand, f"discovery/resource/{number}", b"") is None
    full = keep(hand, "discovery/resource/2", b"")

    assert isinstance(full, TooMuchKept)
    assert full.problem == "service state is full: 2 resources with 40 bytes"
    assert "DELETE /resources/ID" in full.remedy
    assert keep(hand, "wsrm/in/1", b"") is None
    assert isinstance(keep(hand, "wsrm/in/2", b"x" * 100), TooMuchKept)
    assert keep(hand.crash(), "registration/1", b"") is None


def test_a_name_is_neither_empty_nor_endless() -> None:
    hand = Hand()

    for key in ("", "x" * 1_025):
        assert isinstance(keep(hand, key, b""), TooMuchKept)


STEPS = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.none() | st.binary(max_size=3), st.booleans(), st.booleans()
    )
)


@given(STEPS)
def test_memory_and_disk_agree_whatever_happens(steps: list[tuple[str, bytes, bool, bool]]) -> None:
    hand = Hand(BrokerOptions(kept_max=2, kept_bytes_max=8))
    for number, (key, value, commit, fails) in enumerate(steps):
        hand.broker.keep({key: value}, number)
        if commit:
            for asked in only(Commit, hand.flush()):
                if fails:
                    hand.broker.commit_failed(FULL, hand.now)
                else:
                    hand.do(asked)
    hand.settle()

    kept = hand.broker.kept("")
    assert kept == hand.kept
    assert len(kept) <= 2
    assert sum(len(key) + len(value) for key, value in kept.items()) <= 8
