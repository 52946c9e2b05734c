"""A filter that could take too long for an event is not asked, and its owner learns of it."""

from __future__ import annotations

from broker.harness import Hand, S, event, only, seqs
from tocsin.broker.effects import Commit, LogLine, ReadLog
from tocsin.broker.state.state import MATCHING_NS_MAX
from tocsin.event.event import Event


def wide(number: int) -> Event:
    data = b"<r>%b</r>" % (b"<a><b>1</b></a>" * 3_000)
    return Event(str(number), "/s", "t", datacontenttype="application/xml", data=data)


def test_what_was_not_asked_is_told_once_and_counted_each_time() -> None:
    hand = Hand()
    sub = hand.subscribe(filters=[{"xpath": "//a[b = //a/b]"}])

    hand.publish(wide(1))
    hand.publish(wide(2))

    notes = [e for e in hand.seen if isinstance(e, LogLine) and "not evaluated" in e.message]
    assert len(notes) == 1
    assert hand.broker.counters.filters_skipped == 2
    assert "event 1 was not matched" in (hand.broker.view(sub).last_error or "")


def test_filters_that_take_long_do_not_keep_the_broker_from_everything_else() -> None:
    elapsed_ns = iter(range(0, 10**18, MATCHING_NS_MAX // 2))  # each look at the watch takes long
    hand = Hand(stopwatch=lambda: next(elapsed_ns))
    sub = hand.subscribe()
    box = hand.subscribe(sink=None)

    hand.publish(*(event(number) for number in range(20)))

    assert len(only(ReadLog, hand.seen)) > 5  # a little at a time
    assert hand.broker.view(sub).waiting == 20
    assert seqs([hand.pull(box)]) == list(range(1, 21))


def test_what_is_still_to_be_matched_when_power_fails_is_matched_after_it() -> None:
    elapsed_ns = iter(range(0, 10**18, MATCHING_NS_MAX))
    hand = Hand(stopwatch=lambda: next(elapsed_ns))
    hand.subscribe(sink=None)
    late = hand.subscribe(sink=None, filters=[{"exact": {"id": "19"}}])
    hand.pass_s(60)
    hand.broker.publish([event(number) for number in range(20)], object())
    hand.do(only(Commit, hand.flush())[0])
    hand.now += 60 * S  # cursors are saved now and then
    hand.do(only(Commit, hand.flush())[0])
    assert hand.broker.view(late).waiting == 0

    again = hand.crash()
    again.settle()

    assert seqs([again.pull(late)]) == [20]
