"""What a push adds to an event: the signature of Standard Webhooks, and the handshake by which a
sink agrees to be sent events (CloudEvents HTTP 1.1 Web Hooks, section 4)."""

from __future__ import annotations

import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from tocsin.errors import BadSubscription
from tocsin.wire.cloudevents import percent

SECRET_PREFIX = "whsec_"
SECRET_BYTES_MIN = 24
SECRET_BYTES_MAX = 64
RATE_DIGITS_MAX = 9  # a billion requests a minute is no limit


SIGNING = "signing"  # what a signing secret is sealed for


def parse_secret(text: str) -> bytes:
    """The key that `whsec_...` stands for."""
    encoded = text.removeprefix(SECRET_PREFIX)
    try:
        secret = binascii.a2b_base64(encoded, strict_mode=True)
    except ValueError:
        secret = b""
    if encoded == text or not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
        raise BadSubscription(
            "the signing secret cannot be used",  # it is a secret: not shown
            remedy=f"Send {SECRET_PREFIX} and {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} random "
            "bytes in base64, as from: echo whsec_$(openssl rand -base64 32)",
        )
    return secret


def sign(secret: bytes, message_id: str, timestamp_s: int, body: bytes) -> bytes:
    """The three header lines that let the sink check who sent the body, and when."""
    safe_id = percent.encoded(message_id)
    signed = b"%b.%d.%b" % (safe_id.encode(), timestamp_s, body)
    signature = binascii.b2a_base64(hmac.digest(secret, signed, hashlib.sha256), newline=False)
    return b"webhook-id: %b\r\nwebhook-timestamp: %d\r\nwebhook-signature: v1,%b\r\n" % (
        safe_id.encode(),
        timestamp_s,
        signature,
    )


@dataclass(frozen=True, slots=True)
class Allowed:
    """The sink wants events, at most so many a minute; None: as many as come."""

    rate_per_minute: int | None


@dataclass(frozen=True, slots=True)
class Refused:
    """The sink did not agree."""

    reason: str


def handshake_headers(
    origin: str, *, callback_url: str | None = None, rate_per_minute: int | None = None
) -> bytes:
    """The header lines of the OPTIONS request that asks a sink whether it wants events."""
    lines = [f"webhook-request-origin: {percent.encoded(origin)}"]
    if callback_url is not None:
        # A URL is encoded already: only what could end the line is encoded once more.
        lines.append(f"webhook-request-callback: {percent.encoded_url(callback_url)}")
    if rate_per_minute is not None:
        assert rate_per_minute > 0
        lines.append(f"webhook-request-rate: {rate_per_minute}")
    lines.append("")
    return "\r\n".join(lines).encode()


def read_handshake(status: int, headers: Mapping[str, str], origin: str) -> Allowed | Refused:
    """What the sink answered; the names of `headers` are lower-case.

    Only the header is consent, whatever the status says; an error is none even with the header.
    """
    if not 200 <= status < 300:
        return Refused(f"the sink answered OPTIONS with status {status}")
    allowed = headers.get("webhook-allowed-origin", "").strip()
    if not allowed:
        return Refused("the sink answered OPTIONS without WebHook-Allowed-Origin")
    if allowed != "*" and allowed.lower() != origin.lower():
        return Refused(f"the sink allows the origin {allowed[:80]!r} and not {origin!r}")
    return _rate(headers.get("webhook-allowed-rate", "*").strip())


def _rate(text: str) -> Allowed | Refused:
    if text == "*":
        return Allowed(None)
    is_number = text.isascii() and text.isdigit() and len(text) <= RATE_DIGITS_MAX
    if not is_number or int(text) == 0:
        return Refused(f"the sink answered with WebHook-Allowed-Rate {text[:80]!r}")
    return Allowed(int(text))
