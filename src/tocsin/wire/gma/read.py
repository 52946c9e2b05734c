"""Bytes to messages: with namespaces, whatever the prefixes, and both ways where the paper's text
and examples differ. A request that cannot be taken is refused with the reply that says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, NoReturn

from lxml import etree

from tocsin import safexml
from tocsin.errors import BadMessage, TocsinError
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.names import (
    EXTENSION,
    NAME_CHARS_MAX,
    NAMESPACE_CHARS_MAX,
    PROTOCOL,
    TIME_STAMP,
    XSI,
    EventName,
    event_name,
    is_canonical,
    is_own,
)
from tocsin.wire.gma.plain import ELEMENTS_MAX, ID_CHARS_MAX, read_plain, read_plain_content
from tocsin.wire.gma.stamp import read_stamp
from tocsin.wire.gma.values import XML_SPACE, typed, typed_as
from tocsin.wire.gma.write import event_element
from tocsin.wire.soap.envelope import split
from tocsin.wire.soap.slices import cut_from

DETAIL_CHARS_MAX = 4_096
NAMES_MAX = 100_000  # in one EventNamesReply
NESTING_MAX = 20

_LISTED_TAGS = ("Event", f"{{{PROTOCOL}}}Event")
_XSI_TYPE = f"{{{XSI}}}type"
_SHOWN_MAX = 80
# `split` remembers the tags it has seen, so that those of strangers must be short.
_TAG_CHARS_MAX = NAME_CHARS_MAX + NAMESPACE_CHARS_MAX + len("{}")
_SHORT_BYTES_MAX = 4_096
# The paper's example of an EventNamesReply ends with the tag that the message once had.
_FORMER_END = b"</AvailableEventsReply>"
_FORMER_BEGIN = b"<AvailableEventsReply"

Tree = etree._Element


class _Parts(NamedTuple):
    """A message taken apart, with one look at each child."""

    root: Tree
    kind: str
    own: dict[str, str]  # the texts of the protocol's own children, by name
    extensions: dict[str, Tree]  # ours, by name
    subjects: list[Tree]  # events or parameters, of which there can be one


def read(data: bytes) -> m.Message:
    """The message; BadMessage, or BadXml, if there is none in these bytes."""
    if (plain := read_plain(data)) is not None:
        return plain
    return _read(safexml.to_utf8(data))[0]


def read_content(data: bytes) -> tuple[m.Message, bytes | None]:
    """The message, and its event as one element that stands by itself: as it was sent, unless
    that was one of the paper's misspellings."""
    return read_plain_content(data) or read_parsed(data)


def read_parsed(data: bytes) -> tuple[m.Message, bytes | None]:
    """As `read_content`, of any message, by the parser."""
    raw = safexml.to_utf8(data)
    message, parts = _read(raw)
    if not isinstance(message, m.EventMessage | m.QueryReply) or message.event is None:
        return message, None
    [element] = parts.subjects
    if not is_canonical(*split(element.tag)):
        return message, event_element(message.event).encode()
    return message, cut_from(raw, [element])[0]


def _read(raw: bytes) -> tuple[m.Message, _Parts]:
    if raw.rstrip().endswith(_FORMER_END) and _FORMER_BEGIN not in raw:
        raw = raw.replace(_FORMER_END, b"</EventNamesReply>")
    root = safexml.parse(raw, what="the message", depth_max=NESTING_MAX)
    if len(raw) > _SHORT_BYTES_MAX:
        _check_tags(root)
    namespace, kind = split(root.tag)
    if kind == "AvailableEventsReply":
        kind = "EventNamesReply"
    reader = _READERS.get(kind)
    if reader is None:
        raise BadMessage(
            f"there is no message {kind[:_SHOWN_MAX]!r}",
            remedy=f"There are {', '.join(sorted(_READERS))}.",
        )
    try:
        if namespace != PROTOCOL:
            _bad(f"{kind} is in the namespace {namespace[:200]!r}", f"It belongs to {PROTOCOL}.")
        parts = _taken_apart(root, kind)
        return reader(parts), parts
    except TocsinError as error:
        raise _refused(error, kind, root) from None


def _refused(error: TocsinError, kind: str, root: Tree) -> BadMessage:
    """The error with the reply that tells it, if this was a request with an id to reply to."""
    told = BadMessage(error.problem, remedy=error.remedy)
    request_id = (root.get("requestID") or "").strip(XML_SPACE)
    asked = _REQUESTS.get(kind)
    if asked is not None and 0 < len(request_id) <= ID_CHARS_MAX:
        told.refusal = m.failure(asked, request_id, str(told))
    return told


def _bad(problem: str, remedy: str) -> NoReturn:
    raise BadMessage(problem, remedy=remedy)


def _check_tags(root: Tree) -> None:
    longest = max(len(str(element.tag)) for element in root.iter())
    if longest > _TAG_CHARS_MAX:
        _bad(f"an element's name has {longest} characters", "Use shorter names and namespaces.")


# Parts that messages have in common


def _taken_apart(root: Tree, kind: str) -> _Parts:
    own: dict[str, str] = {}
    extensions: dict[str, Tree] = {}
    subjects: list[Tree] = []
    for child in root:
        namespace, local = split(child.tag)
        if not is_own(namespace, local):
            subjects.append(child)
        elif namespace == EXTENSION:
            extensions.setdefault(local, child)
        elif local in own:
            _bad(f"{kind} has more than one {local}", "Send one.")
        elif len(child):
            _bad(f"{local} holds elements", f"Send {local} as text.")
        else:
            own[local] = child.text or ""
    return _Parts(root, kind, own, extensions, subjects)


def _request_id(parts: _Parts) -> str:
    return _id(parts.root.get("requestID"), "requestID", parts.kind)


def _subscription_id(parts: _Parts) -> str:
    return _id(parts.own.get("SubscriptionID"), "SubscriptionID", parts.kind)


def _id(text: str | None, what: str, whose: str) -> str:
    found = (text or "").strip(XML_SPACE)
    if not found:
        _bad(f"{whose} has no {what}", f"Give it a {what}.")
    if len(found) > ID_CHARS_MAX:
        _bad(f"a {what} has {len(found)} characters", f"Use at most {ID_CHARS_MAX}.")
    return found


def _returned(parts: _Parts) -> tuple[str, str | None]:
    returned = parts.own.get("Return", "").strip(XML_SPACE)
    if not returned:
        _bad(f"{parts.kind} has no Return", "Say Success or Failure.")
    detail = parts.own.get("ReturnDetail")
    return returned[:ID_CHARS_MAX], None if detail is None else detail[:DETAIL_CHARS_MAX]


def _subject(parts: _Parts) -> Tree | None:
    """The one child that is neither the protocol's nor an extension: event or parameters."""
    subjects = parts.subjects
    if len(subjects) > 1:
        names = " and ".join(split(each.tag)[1][:_SHOWN_MAX] for each in subjects[:2])
        _bad(f"{parts.kind} holds {names}", "Send one event in one message.")
    return subjects[0] if subjects else None


def _name(element: Tree) -> EventName:
    namespace, local = split(element.tag)
    if len(local) > NAME_CHARS_MAX or len(namespace) > NAMESPACE_CHARS_MAX:
        _bad(
            f"the name of the event {local[:_SHOWN_MAX]} is too long",
            f"Use at most {NAME_CHARS_MAX} characters, and {NAMESPACE_CHARS_MAX} for a namespace.",
        )
    return event_name(namespace, local)


def _checked_size(parent: Tree) -> None:
    count = sum(1 for _ in parent.iter()) - 1
    if count > ELEMENTS_MAX:
        name = split(parent.tag)[1][:_SHOWN_MAX]
        _bad(f"{name} has {count} elements", f"Send at most {ELEMENTS_MAX}.")


def _element(element: Tree) -> m.Element:
    name = split(element.tag)[1]
    if len(name) > NAME_CHARS_MAX:
        _bad(
            f"the name of the element {name[:_SHOWN_MAX]} has {len(name)} characters",
            f"Use at most {NAME_CHARS_MAX} characters.",
        )
    attributes = dict(element.items())
    units, accuracy = attributes.get("units"), attributes.get("accuracy")
    if len(units or "") > m.UNITS_CHARS_MAX or len(accuracy or "") > m.UNITS_CHARS_MAX:
        _bad(
            f"units or accuracy of {name} are too long",
            f"Use at most {m.UNITS_CHARS_MAX} characters.",
        )
    if len(element):
        return m.Element(name, tuple(map(_element, element)), units, accuracy)
    text, declared = element.text or "", attributes.get(_XSI_TYPE)
    value = typed(text) if declared is None else typed_as(text, declared)
    return m.Element(name, value, units, accuracy)


def _event_of(element: Tree) -> m.PerformanceEvent:
    name = _name(element)
    _checked_size(element)
    elements: list[m.Element] = []
    stamps: list[Tree] = []
    for child in element:
        if split(child.tag)[1] == TIME_STAMP:
            stamps.append(child)
        else:
            elements.append(_element(child))
    if len(stamps) != 1 or len(stamps[0]):
        _bad(
            f"the event {name.local} has {len(stamps) or 'no'} {TIME_STAMP}",
            "An event always says when it was made, as in "
            f"<{TIME_STAMP}>2000-11-09T21:51:45Z</{TIME_STAMP}>.",
        )
    time = (stamps[0].text or "").strip(XML_SPACE)
    read_stamp(time)
    return m.PerformanceEvent(name, time, tuple(elements))


# Extensions


def _filter(parts: _Parts) -> str | None:
    """The filter, which may also stand among the parameters."""
    found = parts.extensions.get("Filter")
    if found is None and parts.subjects:
        found = parts.subjects[0].find(f"{{{EXTENSION}}}Filter")
    if found is None:
        return None
    if len(found):
        _bad("Filter holds elements", "Write it as in Load5 >= 5.0 and HostName = foo.gov.")
    return found.text or ""


def _options(parts: _Parts) -> m.Options | None:
    found = {
        split(name)[1]: value for name, value in parts.root.items() if split(name)[0] == EXTENSION
    }
    element = parts.extensions.get("Options")
    if element is not None:  # as good as attributes, for who finds that easier to write
        found.update((split(name)[1], value) for name, value in element.items())
    elif not found:
        return None
    role, after = found.get("role"), found.get("after")
    if role not in (None, "producer", "consumer"):
        _bad(f"the role {role[:40]!r} is none", "Say producer or consumer, or leave it out.")
    acknowledge = found.get("acknowledge")
    return m.Options(
        role,
        None if after is None else _seq(after, "after"),
        None if acknowledge is None else _id(acknowledge, "acknowledge", "Options"),
        context=found.get("context") == "true",
        filtered=found.get("filtered") == "true",
    )


def _context(parts: _Parts) -> m.Context | None:
    found = parts.extensions.get("Context")
    if found is None:
        return None
    seq = _seq(found.get("seq") or "", "the Context's seq")
    return m.Context(seq, *((found.get(name) or "") for name in ("id", "source", "topic")))


def _seq(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        _bad(f"{what} is {text[:40]!r}", "Give a sequence number.")
    return int(text)


# Messages


def _parameters(parts: _Parts) -> m.Parameters:
    subject = _subject(parts)
    if subject is None:
        _bad(
            f"{parts.kind} does not say which events",
            "Send an element with the event's name, as in <UptimeCPULoad "
            'xmlns="http://www.gridforum.org/Performance/EventParameters"/>.',
        )
    _checked_size(subject)
    wanted = (child for child in subject if split(child.tag)[0] != EXTENSION)
    return m.Parameters(_name(subject), tuple(map(_element, wanted)))


def _subscribe_request(parts: _Parts) -> m.SubscribeRequest:
    return m.SubscribeRequest(
        _request_id(parts),
        _subscription_id(parts),
        _parameters(parts),
        _filter(parts),
        _options(parts),
    )


def _subscribe_reply(parts: _Parts) -> m.SubscribeReply:
    request_id, returned = _request_id(parts), _returned(parts)
    subscription_id = _subscription_id(parts) if "SubscriptionID" in parts.own else None
    return m.SubscribeReply(request_id, *returned, subscription_id, _options(parts))


def _unsubscribe_request(parts: _Parts) -> m.UnsubscribeRequest:
    return m.UnsubscribeRequest(_request_id(parts), _subscription_id(parts))


def _unsubscribe_reply(parts: _Parts) -> m.UnsubscribeReply:
    return m.UnsubscribeReply(_request_id(parts), *_returned(parts))


def _event(parts: _Parts) -> m.EventMessage:
    subscription_id = _id(parts.root.get("subscriptionID"), "subscriptionID", parts.kind)
    subject, error = _subject(parts), parts.own.get("Error")
    if subject is None and error is None:
        _bad("the message holds neither an event nor an Error", "Send one of them.")
    return m.EventMessage(
        subscription_id,
        None if subject is None else _event_of(subject),
        error,
        parts.own.get("ErrorDetail"),
        None if parts.root.get("requestID") is None else _request_id(parts),
        _context(parts),
    )


def _event_reply(parts: _Parts) -> m.EventReply:
    return m.EventReply(_request_id(parts), *_returned(parts))


def _query_request(parts: _Parts) -> m.QueryRequest:
    return m.QueryRequest(_request_id(parts), _parameters(parts), _filter(parts))


def _query_reply(parts: _Parts) -> m.QueryReply:
    subject = _subject(parts)
    event = None if subject is None else _event_of(subject)
    return m.QueryReply(_request_id(parts), *_returned(parts), event)


def _event_names_request(parts: _Parts) -> m.EventNamesRequest:
    return m.EventNamesRequest(_request_id(parts))


def _event_names_reply(parts: _Parts) -> m.EventNamesReply:
    if len(parts.subjects) > NAMES_MAX:
        _bad(f"the reply lists {len(parts.subjects)} names", f"Send at most {NAMES_MAX}.")
    names = tuple(_listed(each) for each in parts.subjects if each.tag in _LISTED_TAGS)
    return m.EventNamesReply(_request_id(parts), *_returned(parts), names)


def _listed(element: Tree) -> EventName:
    local = (element.get("name") or "").strip(XML_SPACE)
    if not local:
        _bad("an Event of the list has no name", "Give each a name and a namespace.")
    return event_name((element.get("namespace") or "").strip(XML_SPACE), local)


_READERS: dict[str, Callable[[_Parts], m.Message]] = {
    "SubscribeRequest": _subscribe_request,
    "SubscribeReply": _subscribe_reply,
    "UnsubscribeRequest": _unsubscribe_request,
    "UnsubscribeReply": _unsubscribe_reply,
    "Event": _event,
    "EventReply": _event_reply,
    "QueryRequest": _query_request,
    "QueryReply": _query_reply,
    "EventNamesRequest": _event_names_request,
    "EventNamesReply": _event_names_reply,
}
_REQUESTS: dict[str, type] = {
    "SubscribeRequest": m.SubscribeRequest,
    "UnsubscribeRequest": m.UnsubscribeRequest,
    "QueryRequest": m.QueryRequest,
    "EventNamesRequest": m.EventNamesRequest,
    "Event": m.EventMessage,
}
