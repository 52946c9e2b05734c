"""Wildcards of other systems in topic patterns: found at the edge, and answered with ours.

`#` and `+` are wildcards in MQTT. Here they would be ordinary levels, so that `lead/#` waits for
ever for a topic that nobody publishes. A topic may have such a level, and `topic` = 'lead/#' (the
topic compared as a text) asks for it; a pattern that holds one is a mistake. Only requests are
checked: a subscription that was stored before keeps what it asked for.
"""

from __future__ import annotations

from tocsin.errors import BadFilter
from tocsin.event.filter import All, AnyOf, Filter, Not, TopicIs

_OURS = {"#": "**", "+": "*", ">": "**"}
_SYSTEM = {"#": "MQTT", "+": "MQTT", ">": "NATS"}


def own_wildcards(pattern: str) -> str:
    """The pattern with the wildcards of MQTT and NATS in place of which ours are meant."""
    return "/".join(_OURS.get(level, level) for level in pattern.split("/"))


def without_foreign_wildcards(wanted: Filter) -> Filter:
    """The filter itself; BadFilter if one of its topic patterns has a wildcard of MQTT."""
    match wanted:
        case TopicIs(pattern):
            _check(pattern.levels)
        case All(parts) | AnyOf(parts):
            for part in parts:
                without_foreign_wildcards(part)
        case Not(part):
            without_foreign_wildcards(part)
        case _:
            pass
    return wanted


def _check(levels: tuple[str, ...]) -> None:
    foreign = next((level for level in levels if level in _OURS), None)
    if foreign is None:
        return
    pattern = "/".join(levels)
    raise BadFilter(
        f"topic pattern {pattern!r} has {foreign!r}, the wildcard of {_SYSTEM[foreign]}",
        remedy=f"Write {own_wildcards(pattern)} (* is one level, ** any number of levels). "
        f"If a level is really named {foreign}, write `topic` = {pattern!r}.",
    )
