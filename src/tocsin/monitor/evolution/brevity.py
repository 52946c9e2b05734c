"""Changes in a few words, as a table has room for."""

from __future__ import annotations


def brief(value: object) -> str | None:
    """How a thing was or is: a text, a binding, or all that an activity was made of."""
    if isinstance(value, dict):
        if "from" in value or "value" in value:
            sources = ", ".join(map(str, value.get("from", ())))
            text = str(value.get("value", ""))
            return f"{text} from {sources}".strip() if sources else text
        parts = value.get("does") or value
        if not isinstance(parts, dict):
            return str(parts)
        return "; ".join(_part(part) for part in parts.values() if part)
    return value if value is None else str(value)


def _part(part: object) -> str:
    listed = part if isinstance(part, list) else [part]
    return ", ".join(brief(each) or "" for each in listed)
