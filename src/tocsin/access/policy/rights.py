"""Rights: what may be done with which events or resources; rules, which grant them; and how both
are written in the configuration and over the API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from tocsin.access.decision import Action
from tocsin.access.resources import KINDS, kind_of
from tocsin.access.session import BROKER
from tocsin.errors import BadRight, TocsinError
from tocsin.event.filter import EVERYTHING, All, Filter, TopicIs
from tocsin.event.filter_text import parse_filter
from tocsin.event.instant import (
    ISO8601_CHARS_MAX,
    LATEST_NS,
    NS_PER_MS,
    datetime_ns,
    iso_duration_ns,
    rfc3339,
    rfc3339_ns,
)
from tocsin.event.topic import TopicPattern

ANY_TOPIC: Final = TopicPattern(("**",))
NAME_CHARS_MAX: Final = 200
RIGHTS_MAX: Final = 100  # of one token
_ALL: Final = frozenset(Action)


class Right(msgspec.Struct, frozen=True):
    """One right. With a resource it is about that, and else about events."""

    actions: frozenset[Action]
    topic: TopicPattern = ANY_TOPIC
    filter_text: str = ""  # as it was written
    filter: Filter = EVERYTHING  # of events of the topic, those that it is about
    resource: str = ""  # of the kinds of `resources.py`, as in run/r1; run/* for all of a kind
    expires_ns: int | None = None
    tells_withheld: bool = False  # who subscribes may learn how many events it does not get

    @property
    def is_whole(self) -> bool:
        """About every event, and so about everything else too."""
        return not self.resource and self.filter == EVERYTHING and self.topic == ANY_TOPIC

    def has(self, resource: str) -> bool:
        """True if it is about this resource, which is no event."""
        if not self.resource:
            return self.is_whole
        wanted = self.resource
        if wanted.endswith("/*"):
            return resource == wanted or resource.startswith(wanted[:-1])
        return resource == wanted

    @property
    def events(self) -> Filter:
        """The events that it is about, as a filter."""
        return All((TopicIs(self.topic), self.filter))


class Rule(msgspec.Struct, frozen=True):
    """A right that a principal has, or every member of a group."""

    id: str
    right: Right
    principal: str = ""
    group: str = ""
    granted_by: str = ""  # who made it over the API; empty for one of the configuration

    def applies_to(self, name: str, groups: frozenset[str]) -> bool:
        return self.group in groups if self.group else self.principal == name


EVERY_RIGHT: Final = Right(actions=_ALL)

_RIGHT_KEYS: Final = ("action", "topic", "filter", "resource", "expires", "withheld")
_RULE_KEYS: Final = ("principal", "group", *_RIGHT_KEYS)


def read_right(written: Mapping[str, Any], now_ns: int) -> Right:
    """A right as it is written: {"action": "publish", "topic": "lead/**"}. Raises BadRight."""
    _known(written, _RIGHT_KEYS, "a right")
    return _right(written, now_ns)


def read_rule(written: Mapping[str, Any], rule_id: str, now_ns: int, granted_by: str = "") -> Rule:
    """A rule as it is written: a right, and whose it is. Raises BadRight."""
    _known(written, _RULE_KEYS, "a rule")
    principal, group = _text(written, "principal"), _text(written, "group")
    if bool(principal) == bool(group):
        raise BadRight(
            "a rule is for one principal or for one group",
            remedy='Give one of the two, as in principal = "alice" or group = "operators".',
        )
    if principal == BROKER.name:
        raise BadRight(
            "the broker itself needs no rule", remedy="Name a principal that signs in, or a group."
        )
    return Rule(rule_id, _right(written, now_ns), principal, group, granted_by)


def write_right(right: Right) -> dict[str, Any]:
    """As it is read, with the end of its time as a moment."""
    actions = sorted(right.actions)
    found: dict[str, Any] = {"action": actions[0] if len(actions) == 1 else actions}
    if right.resource:
        found["resource"] = right.resource
    else:
        found["topic"] = str(right.topic)
    if right.filter_text:
        found["filter"] = right.filter_text
    if right.expires_ns is not None:
        found["expires"] = rfc3339(right.expires_ns, 9 if right.expires_ns % NS_PER_MS else 3)
    if right.tells_withheld:
        found["withheld"] = True
    return found


def write_rule(rule: Rule) -> dict[str, Any]:
    whose = {"group": rule.group} if rule.group else {"principal": rule.principal}
    return {**whose, **write_right(rule.right)}


def _right(written: Mapping[str, Any], now_ns: int) -> Right:
    resource, filter_text = _text(written, "resource"), _text(written, "filter")
    if resource and ("topic" in written or filter_text):
        raise BadRight(
            "a right is about a resource or about events, and not about both",
            remedy="Write two: one with topic and filter, one with resource.",
        )
    if resource and kind_of(resource) not in KINDS:
        raise BadRight(
            f"there is no kind of resource {kind_of(resource)[:64]!r}",
            remedy=f"The kinds are {', '.join(KINDS)}.",
        )
    withheld = written.get("withheld", False)
    if not isinstance(withheld, bool):
        raise BadRight(f"withheld is {withheld!r:.64}", remedy="Give true or false.")
    try:
        topic = TopicPattern.parse(_text(written, "topic") or str(ANY_TOPIC))
        filter = parse_filter(filter_text) if filter_text else EVERYTHING
    except BadRight:
        raise
    except TocsinError as error:
        raise BadRight(error.problem, remedy=error.remedy) from None
    return Right(
        actions=_actions(written.get("action")),
        topic=topic,
        filter_text=filter_text,
        filter=filter,
        resource=resource,
        expires_ns=read_expires(written.get("expires"), now_ns),
        tells_withheld=withheld,
    )


def _actions(written: object) -> frozenset[Action]:
    names = [written] if isinstance(written, str) else written
    known = ", ".join(Action)
    if not isinstance(names, list | tuple) or not names:
        raise BadRight("a right names no action", remedy=f"Give one or several of {known}.")
    if "*" in names:
        return _ALL
    for name in names:
        if name not in list(Action):
            raise BadRight(
                f"there is no action {str(name)[:64]!r}", remedy=f"The actions are {known}."
            )
    return frozenset(Action(name) for name in names)


def read_expires(written: object, now_ns: int) -> int | None:
    """A moment, or a duration from now; None for what has no end."""
    if written is None:
        return None
    found: int | None = None
    if isinstance(written, datetime) and written.tzinfo is not None:  # of a file in TOML
        found = datetime_ns(written)
    elif isinstance(written, str) and len(written) <= ISO8601_CHARS_MAX:
        found = rfc3339_ns(written)
        if found is None and (duration_ns := iso_duration_ns(written)) is not None:
            found = now_ns + duration_ns
    if found is None or found > LATEST_NS:
        raise BadRight(
            f"expires is {str(written)[:64]!r}",
            remedy='Give a moment or a duration, as in "2027-01-31T12:00:00Z" or "PT12H".',
        )
    return found


def _text(written: Mapping[str, Any], key: str) -> str:
    value = written.get(key, "")
    if not isinstance(value, str) or len(value) > (4096 if key == "filter" else 1024):
        raise BadRight(f"{key} is {str(value)[:64]!r}", remedy="Give a text of usual length.")
    if key in ("principal", "group"):
        check_name(value, key)
    return value


def check_name(name: str, what: str) -> str:
    """Raise BadRight for what is no name of a principal or group."""
    if len(name) > NAME_CHARS_MAX or not name.isprintable() or name != name.strip():
        raise BadRight(
            f"{name[:64]!r} cannot be the name of a {what}",
            remedy=f"Use at most {NAME_CHARS_MAX} printable characters.",
        )
    return name


def _known(written: Mapping[str, Any], keys: tuple[str, ...], what: str) -> None:
    for key in written:
        if key not in keys:
            raise BadRight(
                f"{what} has no {str(key)[:64]!r}", remedy=f"It may have {', '.join(keys)}."
            )
