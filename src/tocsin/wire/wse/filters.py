"""Filters of WS-Eventing subscriptions as filters of ours."""

from __future__ import annotations

import re
from typing import Final

from tocsin.errors import TocsinError
from tocsin.wire.soap.addressing import Versions
from tocsin.wire.soap.fault import detail_of
from tocsin.wire.soap.names import (
    DPWS_ACTIONS,
    TOPIC_AND_XPATH,
    TOPICS10_SIMPLE,
    TOPICS13,
    XPATH10,
    XPATH10_WSE11,
)
from tocsin.wire.soap.topics import dialect_kind, topic_filters
from tocsin.wire.wse.faults import bad_filter, dialect_unavailable, empty_filter
from tocsin.wire.wse.messages import Filter
from tocsin.wire.wsn.messages import Expression

Filters = list[object]

ACTIONS_MAX: Final = 200
DIALECTS: Final = (
    XPATH10,
    XPATH10_WSE11,
    *(f"{TOPICS13}/TopicExpression/{name}" for name in ("Simple", "Concrete", "Full")),
    TOPICS10_SIMPLE,
    TOPIC_AND_XPATH,
    *sorted(DPWS_ACTIONS),
)

_XPATHS: Final = frozenset({"", XPATH10, XPATH10_WSE11})
_NAMES_ENVELOPE: Final = re.compile(r"\bEnvelope\b")
_NEVER: Final = re.compile(r"false\s*\(\s*\)")


def to_filters(wanted: Filter | None, spec: str, versions: Versions) -> Filters:
    """Filters that must all hold; a SoapFault for a dialect or a text that is not understood.

    `versions` is how notifications are sent: the envelope that an XPath may look at is such a one.
    """
    if wanted is None:
        return []
    expression = wanted.expression
    try:
        if expression.dialect == TOPIC_AND_XPATH:
            return _topic_and_content(wanted, spec, versions)
        return _one(expression, spec, versions)
    except TocsinError as error:
        raise bad_filter(spec, f"{error.problem}. {error.remedy}", detail_of(error)) from None


def _one(expression: Expression, spec: str, versions: Versions) -> Filters:
    if expression.dialect in _XPATHS:
        return [_xpath(expression, spec, versions)]
    if expression.dialect in DPWS_ACTIONS:
        return [_actions(expression, spec)]
    return _topics(expression, spec)


def _topic_and_content(wanted: Filter, spec: str, versions: Versions) -> Filters:
    """The original's pair; either half may lack."""
    if wanted.topic is None and wanted.content is None:
        raise bad_filter(spec, "the filter has neither a TopicExpression nor a MessageContent")
    found: Filters = []
    if wanted.topic is not None:
        found += _topics(wanted.topic, spec)
    if wanted.content is not None:
        if wanted.content.dialect not in _XPATHS:
            raise dialect_unavailable(spec, wanted.content.dialect, DIALECTS)
        found.append(_xpath(wanted.content, spec, versions))
    return found


def _topics(expression: Expression, spec: str) -> Filters:
    dialect = expression.dialect or TOPICS10_SIMPLE
    kind = dialect_kind(dialect)
    if kind is None:
        raise dialect_unavailable(spec, dialect, DIALECTS)
    if not expression.text:
        raise empty_filter(spec, "the filter names no topic")
    scope: dict[str | None, str] = dict(expression.namespaces)
    return topic_filters(expression.text, scope, kind, names_only=dialect == TOPICS10_SIMPLE)


def _xpath(expression: Expression, spec: str, versions: Versions) -> object:
    """2004/08 looks at the envelope, its users mean the payload: both are tried. In 2011/03 the
    format of delivery is no concern of a filter, so it sees the payload alone."""
    text = expression.text
    if not text or _NEVER.fullmatch(text):
        raise empty_filter(spec, "the filter matches no event")
    found: dict[str, object] = {
        "expression": text,
        "namespaces": dict(expression.namespaces),
    }
    if spec == "wse11" and not _NAMES_ENVELOPE.search(text):
        return {"xpath": {**found, "on": "payload"}}
    return {"xpath": {**found, "on": "envelope", "soap": versions.soap, "wsa": versions.wsa}}


def _actions(expression: Expression, spec: str) -> object:
    """DPWS: one of these URIs is the action, or leads to it segment by segment (DPWS 1.1, 6.1.1;
    its rule for comparing is that of WS-Discovery)."""
    actions = list(dict.fromkeys(expression.text.split()))
    if not actions:
        raise empty_filter(spec, "the filter names no action")
    if len(actions) > ACTIONS_MAX:
        raise bad_filter(spec, f"the filter names more than {ACTIONS_MAX} actions")
    choices: Filters = []
    for uri in actions:
        choices.append({"exact": {"type": uri}})
        choices.append({"prefix": {"type": f"{uri.rstrip('/')}/"}})
    return {"any": choices}
