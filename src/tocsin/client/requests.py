"""What a consumer asks for: the filter as people write it, and the addresses that carry it."""

from __future__ import annotations

import json
from urllib.parse import quote

_NOT_IN_A_TOPIC = frozenset(" \t\n\"'<>=!~,()[]")
_WHOLE_FILTERS = frozenset({"everything", "nothing"})


def looks_like_topic(text: str) -> bool:
    """True if text can only be meant as a topic or a topic pattern, as in lead/*/radar."""
    # A level that is only > is the wildcard of NATS; the broker answers it with ours.
    plain = "/".join("*" if level == ">" else level for level in text.split("/"))
    return bool(text) and text not in _WHOLE_FILTERS and not _NOT_IN_A_TOPIC.intersection(plain)


def filter_text(*words: str) -> str:
    """One filter of several texts, joined by and; a bare topic pattern stands for itself."""
    stripped = [word.strip() for word in words if word.strip()]
    parts = [_topic_filter(part) if looks_like_topic(part) else part for part in stripped]
    return parts[0] if len(parts) == 1 else " and ".join(f"({part})" for part in parts)


def _topic_filter(pattern: str) -> str:
    # In quotes, since a bare > would be read as a comparison.
    return f"topic '{pattern}'" if pattern.startswith(">") else f"topic {pattern}"


def filters_json(*words: str) -> list[dict[str, str]]:
    """The same as the `filters` of a subscription."""
    text = filter_text(*words)
    return [{"filter": text}] if text else []


def query(**values: object) -> str:
    """A query string of the values that are set."""
    named = [
        f"{name}={quote(str(value), safe='')}"
        for name, value in values.items()
        if value is not None and value != ""
    ]
    return f"?{'&'.join(named)}" if named else ""


def stream_target(text: str, after: int | None) -> str:
    """Where the live stream of a filter is."""
    return "/events/stream" + query(filter=text, after=after)


def messages_target(box: str, *, count: int, wait_s: float, ack: str | None) -> str:
    """Where the next messages of a box are."""
    return f"/boxes/{quote(box, safe='')}/messages" + query(max=count, wait=wait_s, ack=ack)


def subscription_body(sink: str, text: str, start: int | None, expires: str) -> bytes:
    """A request for events to be pushed."""
    asked = {"sink": sink, "filters": filters_json(text), "expires": expires}
    return json.dumps({**asked, "config": _from(start)}).encode()


def box_body(text: str, start: int | str | None, expires: str) -> bytes:
    """A request for a box."""
    asked = {"filters": filters_json(text), "expires": expires, "config": _from(start)}
    return json.dumps(asked).encode()


def _from(start: int | str | None) -> dict[str, int | str]:
    return {} if start is None else {"from": start}


JSON_HEADERS = (("Content-Type", "application/json"),)
