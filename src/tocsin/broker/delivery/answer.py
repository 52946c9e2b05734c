"""The outcome of an HTTP delivery, read from the raw head of the answer."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from tocsin.broker.delivery.outcome import ANSWER_EXCERPT_BYTES, Answered, Failed, Outcome

RETRY_AFTER_DIGITS_MAX = 9

# The same objects for every delivery: nine of ten answers are one of these.
DELIVERED = {status: Answered(status) for status in range(200, 300)}


def refusal(status: int, head: bytes, body: bytes, now_s: float) -> Outcome:
    """The outcome of a request that was not answered with a success."""
    if status not in range(300, 600):
        return Failed(f"the sink answered with the status {status}", reachable=True)
    asked = fields(head).get("retry-after")
    return Answered(status, None if asked is None else retry_after_s(asked, now_s), excerpt(body))


def fields(head: bytes) -> dict[str, str]:
    """The header fields of the final answer, by lower-case name; the last of a name counts."""
    block = head
    while block.startswith(b"HTTP/1.1 1"):  # an interim answer came before
        block = block.partition(b"\r\n\r\n")[2]
    lines = block.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]
    pairs = (line.decode("latin-1").partition(":") for line in lines)
    return {name.lower(): value.strip() for name, _, value in pairs}


def retry_after_s(text: str, now_s: float) -> float | None:
    """How long a sink asks us to wait: seconds or a date (RFC 9110 section 10.2.3)."""
    if text.isascii() and text.isdigit():
        return float(text[:RETRY_AFTER_DIGITS_MAX])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now_s)
    except (ValueError, OverflowError, OSError):
        return None


def excerpt(body: bytes) -> str:
    """The start of the body for a person to read, with nothing that could upset a terminal."""
    text = body[:ANSWER_EXCERPT_BYTES].decode("utf-8", "replace")
    return "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in text)
