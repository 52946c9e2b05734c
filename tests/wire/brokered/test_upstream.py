"""What is to be asked of a publisher on demand, in every state that things can be in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.names import WSA2005
from tocsin.wire.wsn_brokered.upstream import (
    Step,
    Upstream,
    closed,
    from_bytes,
    next_step,
    opened,
    to_bytes,
)

NOW_NS = 1_000_000_000_000
REFERENCE = EndpointReference("http://p.example/7", parameters=(b"<k/>",))
UPSTREAMS = st.builds(
    Upstream,
    spec=st.sampled_from(["wsn13", "wsn12"]),
    soap=st.just("1.2"),
    wsa=st.just(WSA2005),
    reference=st.none() | st.just(REFERENCE),
    paused=st.booleans(),
    can_pause=st.booleans(),
    renew_ns=st.none() | st.integers(NOW_NS - 5, NOW_NS + 5),
)


def done(upstream: Upstream, step: Step) -> Upstream:
    """The upstream after the publisher did as it was asked."""
    if step is Step.SUBSCRIBE:
        return opened(upstream, REFERENCE, None, NOW_NS)
    if step is Step.UNSUBSCRIBE:
        return closed(upstream)
    if step is Step.RENEW:
        return (
            opened(upstream, REFERENCE, None, NOW_NS)
            if not upstream.paused
            else _unhurried(upstream)
        )
    return Upstream(
        spec=upstream.spec,
        soap=upstream.soap,
        wsa=upstream.wsa,
        reference=upstream.reference,
        can_pause=upstream.can_pause,
        renew_ns=upstream.renew_ns,
        paused=step is Step.PAUSE,
    )


def _unhurried(upstream: Upstream) -> Upstream:
    return Upstream(
        spec=upstream.spec,
        soap=upstream.soap,
        wsa=upstream.wsa,
        reference=upstream.reference,
        can_pause=upstream.can_pause,
        paused=upstream.paused,
    )


@given(upstream=UPSTREAMS, wanted=st.booleans(), over=st.booleans())
def test_a_few_steps_bring_an_upstream_to_what_it_should_be(
    upstream: Upstream, wanted: bool, over: bool
) -> None:
    if upstream.reference is None:
        upstream = closed(upstream)

    for _ in range(4):
        step = next_step(upstream, wanted=wanted, over=over, now_ns=NOW_NS)
        if step is Step.NOTHING:
            break
        upstream = done(upstream, step)

    assert next_step(upstream, wanted=wanted, over=over, now_ns=NOW_NS) is Step.NOTHING
    flows = upstream.reference is not None and not upstream.paused
    assert flows == (wanted and not over)
    assert not (over and upstream.reference is not None)


@given(upstream=UPSTREAMS)
def test_an_upstream_is_stored_whole(upstream: Upstream) -> None:
    assert from_bytes(to_bytes(upstream)) == upstream


def test_a_lease_is_renewed_at_half_of_it() -> None:
    upstream = Upstream(spec="wsn13", soap="1.2", wsa=WSA2005)

    upstream = opened(upstream, REFERENCE, 10_000_000_000, NOW_NS)

    assert upstream.renew_ns == NOW_NS + 5_000_000_000
    assert next_step(upstream, wanted=True, over=False, now_ns=NOW_NS) is Step.NOTHING
    later_ns = NOW_NS + 5_000_000_000
    assert next_step(upstream, wanted=True, over=False, now_ns=later_ns) is Step.RENEW


def test_a_publisher_that_cannot_pause_is_asked_nothing_while_nobody_listens() -> None:
    upstream = Upstream(spec="wsn13", soap="1.2", wsa=WSA2005, can_pause=False)

    assert next_step(upstream, wanted=False, over=False, now_ns=NOW_NS) is Step.NOTHING
    assert next_step(upstream, wanted=True, over=False, now_ns=NOW_NS) is Step.SUBSCRIBE
