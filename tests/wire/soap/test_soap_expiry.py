"""When a subscription ends, as Web-services peers write it."""

from __future__ import annotations

from tocsin.event.instant import NS_PER_S, rfc3339
from tocsin.wire.soap.expiry import read_expiry

S = NS_PER_S
NOW = 1_794_787_200 * S  # 2026-11-16T00:00:00Z


def test_the_originals_clients_count_milliseconds_and_only_theirs_do() -> None:
    asked = read_expiry("259200000", NOW, milliseconds=True)

    assert asked is not None
    assert (asked.expires_ns, asked.kind) == (NOW + 259_200 * S, "milliseconds")
    assert read_expiry("259200000", NOW) is None


def test_an_absurd_length_ends_with_time_itself() -> None:
    asked = read_expiry("P999999999Y", NOW)

    assert asked is not None
    assert asked.expires_ns == 2**63 - 1
    assert rfc3339(asked.expires_ns) < "2263"
