"""How long a WS-Eventing subscription is granted, and how that is written."""

from __future__ import annotations

from typing import Final

from tocsin.event.instant import NS_PER_S
from tocsin.wire.soap.expiry import Expiry, read_expiry
from tocsin.wire.wse.faults import bad_expiry_type, bad_expiry_value

DAY_NS: Final = 86_400 * NS_PER_S
LEASE_NS_DEFAULT: Final = 365 * DAY_NS  # for one who asks for as long as possible
LEASE_NS_MAX: Final = 10 * 365 * DAY_NS  # longer is nobody's intention


def granted(spec: str, asked: str | None, now_ns: int, *, best_effort: bool = False) -> Expiry:
    """The end that is granted; a SoapFault if the one asked for is no time, or is over.

    2004/08 lets us grant less than was asked for. 2011/03 does so only to one who says that it may.
    """
    if asked is None:
        return Expiry(now_ns + LEASE_NS_DEFAULT, "duration")
    expiry = read_expiry(asked, now_ns, milliseconds=spec == "wse04")
    if expiry is None:
        raise bad_expiry_type(spec, f"{asked[:80]!r} is neither an xs:duration nor an xs:dateTime")
    if expiry.expires_ns <= now_ns:
        raise bad_expiry_value(spec, f"{asked[:80]!r} is in the past")
    last_ns = now_ns + LEASE_NS_MAX
    if expiry.expires_ns <= last_ns:
        return expiry
    if spec == "wse11" and not best_effort:
        raise bad_expiry_value(
            spec,
            f"{asked[:80]!r} is too far in the future: {LEASE_NS_MAX // DAY_NS} days at most",
        )
    return Expiry(last_ns, expiry.kind)
