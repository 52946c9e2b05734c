"""Parts of the service for which no socket is needed: a stream of events, and their checks."""

from __future__ import annotations

import pytest
from frames_peer import EVENTS, Said
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import TocsinError
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.services.performance.event_stream import EventStream
from tocsin.services.performance.service import CHECKED_MAX, EventChecks
from tocsin.wire.cloudevents.attributes import check_event
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.gma.messages import Element, PerformanceEvent
from tocsin.wire.gma.names import EventName
from tocsin.wire.gma.normal import to_event
from tocsin.wire.gma.period_filter import PeriodFilter
from tocsin.wire.gma.write import event_element

NS = 1_000_000_000


class MessageTransport:
    """Remembers what it was to send, and takes no more if it is told so."""

    def __init__(self) -> None:
        self.sent: list[Said] = []
        self.takes_more = True

    def send(self, messages: list[bytes], *, paced: bool = False) -> bool:
        self.sent += map(Said, messages)
        return self.takes_more

    async def wait_writable(self) -> None: ...


def stream_to(
    transport: MessageTransport, *, context: bool = False, period_s: float | None = None
) -> EventStream:
    period_filter = None if period_s is None else PeriodFilter(period_s)
    return EventStream(
        transport, "12", with_context=context, period_filter=period_filter, on_end=lambda _: None
    )


def performance(load5: float = 1.5, host: str = "foo.gov", name: str = "UptimeCPULoad") -> Event:
    made = PerformanceEvent(
        EventName(name),
        "2000-11-09T21:51:45Z",
        (Element("Load5", load5), Element("HostName", host)),
    )
    content = event_element(made).encode()
    return to_event(made, content, event_id="1", sender="192.0.2.1")


def stored(seq: int, at_s: float = 0.0, host: str = "foo.gov") -> Stored:
    return Stored(seq, int(at_s * NS), performance(float(seq), host))


def loads(transport: MessageTransport) -> list[str | None]:
    return [said.value("Load5") for said in transport.sent]


def test_events_carry_the_consumer_s_id_and_their_place_only_if_asked() -> None:
    plain, reported = MessageTransport(), MessageTransport()

    stream_to(plain).write([stored(7)])
    stream_to(reported, context=True).write([stored(7)])

    assert [said.subscription for said in plain.sent + reported.sent] == ["12", "12"]
    assert plain.sent[0].context == {}
    assert reported.sent[0].context == {
        "seq": "7",
        "id": "1",
        "source": "gma://foo.gov",
        "topic": "gma/UptimeCPULoad/foo.gov",
    }


def test_the_broker_learns_that_a_transport_is_full() -> None:
    transport = MessageTransport()
    transport.takes_more = False

    assert stream_to(transport).write([stored(1)]) is False


def test_a_period_goes_by_when_events_were_received_not_by_when_they_are_sent() -> None:
    transport = MessageTransport()
    events = [stored(1, 0), stored(2, 1, "bar.gov"), stored(3, 4), stored(4, 10), stored(5, 11)]

    stream_to(transport, period_s=10).write(events)

    assert loads(transport) == ["1.0", "2.0", "4.0"]


def test_events_that_were_gone_are_told_as_an_error_of_the_subscription() -> None:
    transport = MessageTransport()

    stream_to(transport).dropped(42)

    (said,) = transport.sent
    assert (said.kind, said.subscription) == ("Event", "12")
    assert said.text("Error") == "EventsDropped"
    assert said.text("ErrorDetail") == "42 events were removed before they could be sent"


# Checks


def refused(check: object) -> str | None:
    try:
        check()  # type: ignore[operator]
    except TocsinError as error:
        return str(error)
    return None


texts = st.text(max_size=12) | st.sampled_from(["", "run/e1", "x" * 9_000, "\x07", "\u2028"])


@given(
    st.lists(
        st.builds(
            Event,
            id=texts,
            source=st.sampled_from(["gma://a", "gma://a", "gma://b c"]),
            type=st.sampled_from([f"{EVENTS}/A", f"{EVENTS}/A", "urn:x/\x07"]),
            time=st.sampled_from(["2000-11-09T21:51:45Z", "never", None]),
            subject=st.sampled_from([None, "a", "\x00"]),
            data=st.binary(max_size=30),
        ),
        max_size=6,
    ),
    st.integers(20, 400),
)
def test_checking_only_what_differs_finds_the_same_as_checking_everything(
    events: list[Event], text_max: int
) -> None:
    limits = Limits(event_bytes_max=20, attribute_text_max=8_192 + text_max)
    checks = EventChecks(limits)

    for event in events:
        assert refused(lambda event=event: checks.check(event)) == refused(
            lambda event=event: check_event(event, limits)
        )


def test_attributes_are_held_to_a_limit_that_is_below_the_usual_one() -> None:
    checks = EventChecks(Limits(attribute_text_max=100))
    checks.check(performance())
    event = performance()
    event.attributes["Note"] = "x" * 101

    with pytest.raises(TocsinError, match="Note"):
        checks.check(event)


def test_names_and_hosts_that_are_known_are_forgotten_in_time() -> None:
    checks = EventChecks(Limits())
    for number in range(CHECKED_MAX + 10):
        checks.check(Event(f"{number}", f"gma://h{number}", "t", time="2000-11-09T21:51:45Z"))

    assert len(checks._checked) <= CHECKED_MAX
