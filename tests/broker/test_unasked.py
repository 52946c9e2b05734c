"""A filter that could take too long for an event is not asked, and its owner learns of it."""

from __future__ import annotations

from broker.harness import Hand
from tocsin.broker.effects import Note
from tocsin.event.event import Event


def wide(number: int) -> Event:
    data = b"<r>%b</r>" % (b"<a><b>1</b></a>" * 3_000)
    return Event(str(number), "/s", "t", datacontenttype="application/xml", data=data)


def test_what_was_not_asked_is_told_once_and_counted_each_time() -> None:
    hand = Hand()
    sub = hand.subscribe(filters=[{"xpath": "//a[b = //a/b]"}])

    hand.publish(wide(1))
    hand.publish(wide(2))

    notes = [e for e in hand.seen if isinstance(e, Note) and "not asked" in e.message]
    assert len(notes) == 1
    assert hand.broker.counters.unasked == 2
    assert "event 1 was not matched" in (hand.broker.view(sub).last_error or "")
