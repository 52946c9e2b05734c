"""What is to be asked of a publisher on demand, in every state that things can be in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.names import WSA2005
from tocsin.wire.wsn_brokered.tap import (
    Step,
    Tap,
    closed,
    from_bytes,
    next_step,
    opened,
    to_bytes,
)

NOW_NS = 1_000_000_000_000
REFERENCE = EndpointReference("http://p.example/7", parameters=(b"<k/>",))
TAPS = st.builds(
    Tap,
    spec=st.sampled_from(["wsn13", "wsn12"]),
    soap=st.just("1.2"),
    wsa=st.just(WSA2005),
    reference=st.none() | st.just(REFERENCE),
    paused=st.booleans(),
    can_pause=st.booleans(),
    renew_ns=st.none() | st.integers(NOW_NS - 5, NOW_NS + 5),
)


def done(tap: Tap, step: Step) -> Tap:
    """The tap after the publisher did as it was asked."""
    if step is Step.SUBSCRIBE:
        return opened(tap, REFERENCE, None, NOW_NS)
    if step is Step.UNSUBSCRIBE:
        return closed(tap)
    if step is Step.RENEW:
        return opened(tap, REFERENCE, None, NOW_NS) if not tap.paused else _unhurried(tap)
    return Tap(
        spec=tap.spec,
        soap=tap.soap,
        wsa=tap.wsa,
        reference=tap.reference,
        can_pause=tap.can_pause,
        renew_ns=tap.renew_ns,
        paused=step is Step.PAUSE,
    )


def _unhurried(tap: Tap) -> Tap:
    return Tap(
        spec=tap.spec,
        soap=tap.soap,
        wsa=tap.wsa,
        reference=tap.reference,
        can_pause=tap.can_pause,
        paused=tap.paused,
    )


@given(tap=TAPS, wanted=st.booleans(), over=st.booleans())
def test_a_few_steps_bring_a_tap_to_where_it_should_be(tap: Tap, wanted: bool, over: bool) -> None:
    if tap.reference is None:
        tap = closed(tap)

    for _ in range(4):
        step = next_step(tap, wanted=wanted, over=over, now_ns=NOW_NS)
        if step is Step.NOTHING:
            break
        tap = done(tap, step)

    assert next_step(tap, wanted=wanted, over=over, now_ns=NOW_NS) is Step.NOTHING
    flows = tap.reference is not None and not tap.paused
    assert flows == (wanted and not over)
    assert not (over and tap.reference is not None)


@given(tap=TAPS)
def test_a_tap_is_kept_whole(tap: Tap) -> None:
    assert from_bytes(to_bytes(tap)) == tap


def test_a_lease_is_renewed_at_half_of_it() -> None:
    tap = Tap(spec="wsn13", soap="1.2", wsa=WSA2005)

    tap = opened(tap, REFERENCE, 10_000_000_000, NOW_NS)

    assert tap.renew_ns == NOW_NS + 5_000_000_000
    assert next_step(tap, wanted=True, over=False, now_ns=NOW_NS) is Step.NOTHING
    later_ns = NOW_NS + 5_000_000_000
    assert next_step(tap, wanted=True, over=False, now_ns=later_ns) is Step.RENEW


def test_a_publisher_that_cannot_pause_is_asked_nothing_while_nobody_listens() -> None:
    tap = Tap(spec="wsn13", soap="1.2", wsa=WSA2005, can_pause=False)

    assert next_step(tap, wanted=False, over=False, now_ns=NOW_NS) is Step.NOTHING
    assert next_step(tap, wanted=True, over=False, now_ns=NOW_NS) is Step.SUBSCRIBE
