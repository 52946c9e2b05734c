"""Bytes to messages: with namespaces, whatever the prefixes, and both ways where the paper's text
and examples differ. A request that cannot be taken is refused with the reply that says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NoReturn

from lxml import etree

from tocsin import safexml
from tocsin.errors import BadEvent, BadMessage, TocsinError
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.names import (
    EXTENSION,
    PROTOCOL,
    TIME_STAMP,
    XSI,
    EventName,
    event_name,
    is_canonical,
)
from tocsin.wire.gma.plain import ELEMENTS_MAX, read_plain
from tocsin.wire.gma.stamp import read_stamp
from tocsin.wire.gma.values import typed, typed_as
from tocsin.wire.gma.write import event_element
from tocsin.wire.soap.envelope import split
from tocsin.wire.soap.slices import cut_from

ID_CHARS_MAX = 256
DETAIL_CHARS_MAX = 4_096
NAMES_MAX = 100_000  # in one EventNamesReply
NESTING_MAX = 20

_OWN = frozenset({"SubscriptionID", "Return", "ReturnDetail", "Error", "ErrorDetail"})
# The paper's example of an EventNamesReply ends with the tag that the message once had.
_FORMER_END = b"</AvailableEventsReply>"
_FORMER_BEGIN = b"<AvailableEventsReply"

Tree = etree._Element


def read(data: bytes) -> m.Message:
    """The message; BadMessage, or BadXml, if there is none in these bytes."""
    return read_content(data)[0]


def read_content(data: bytes) -> tuple[m.Message, bytes | None]:
    """The message, and its event as one element that stands by itself: as it was sent, unless
    that was one of the paper's misspellings."""
    if (plain := read_plain(data)) is not None:
        return plain
    raw = safexml.to_utf8(data)
    if raw.rstrip().endswith(_FORMER_END) and _FORMER_BEGIN not in raw:
        raw = raw.replace(_FORMER_END, b"</EventNamesReply>")
    root = safexml.parse(raw, what="the message", depth_max=NESTING_MAX)
    namespace, local = split(root.tag)
    if local == "AvailableEventsReply":
        local = "EventNamesReply"
    reader = _READERS.get(local)
    if reader is None:
        raise BadMessage(
            f"there is no message {local[:80]!r}",
            remedy=f"There are {', '.join(sorted(_READERS))}.",
        )
    try:
        if namespace != PROTOCOL:
            _bad(f"{local} is in the namespace {namespace[:200]!r}", f"It belongs to {PROTOCOL}.")
        message = reader(root)
        content = _content(message, root, raw)
    except TocsinError as error:
        raise _refused(error, local, root) from None
    return message, content


def _refused(error: TocsinError, local: str, root: Tree) -> BadMessage:
    """The error with the reply that tells it, if this was a request with an id to reply to."""
    request_id = (root.get("requestID") or "").strip()
    asked = _REQUESTS.get(local)
    refusal = None
    if asked is not None and 0 < len(request_id) <= ID_CHARS_MAX:
        refusal = m.failure(asked, request_id, str(error))
    return BadMessage(error.problem, remedy=error.remedy, refusal=refusal)


def _bad(problem: str, remedy: str) -> NoReturn:
    raise BadMessage(problem, remedy=remedy)


# Parts that messages have in common


def _request_id(root: Tree) -> str:
    return _id(root.get("requestID"), "requestID", root)


def _id(text: str | None, what: str, root: Tree) -> str:
    found = (text or "").strip()
    if not found:
        _bad(f"{split(root.tag)[1]} has no {what}", f"Give it a {what}.")
    if len(found) > ID_CHARS_MAX:
        _bad(f"a {what} has {len(found)} characters", f"Use at most {ID_CHARS_MAX}.")
    return found


def _children(root: Tree, local: str) -> Iterator[Tree]:
    """The protocol's own children of that name; without a namespace they are meant, too."""
    for child in root:
        if child.tag in (f"{{{PROTOCOL}}}{local}", local):
            yield child


def _child_text(root: Tree, local: str) -> str | None:
    found = list(_children(root, local))
    if len(found) > 1:
        _bad(f"{split(root.tag)[1]} has {len(found)} of {local}", "Send one.")
    if not found:
        return None
    if len(found[0]):
        _bad(f"{local} holds elements", f"Send {local} as text.")
    return found[0].text or ""


def _subscription_id(root: Tree) -> str:
    return _id(_child_text(root, "SubscriptionID"), "SubscriptionID", root)


def _returned(root: Tree) -> tuple[str, str | None]:
    returned = (_child_text(root, "Return") or "").strip()
    if not returned:
        _bad(f"{split(root.tag)[1]} has no Return", "Say Success or Failure.")
    detail = _child_text(root, "ReturnDetail")
    return returned[:ID_CHARS_MAX], None if detail is None else detail[:DETAIL_CHARS_MAX]


def _subject(root: Tree) -> Tree | None:
    """The one child that is neither the protocol's nor an extension: event or parameters."""
    found = [
        child
        for child in root
        if not (
            (parts := split(child.tag))[0] == EXTENSION
            or (parts[0] in (PROTOCOL, "") and parts[1] in _OWN)
        )
    ]
    if len(found) > 1:
        names = " and ".join(split(child.tag)[1][:40] for child in found[:2])
        _bad(f"{split(root.tag)[1]} holds {names}", "Send one event in one message.")
    return found[0] if found else None


def _name(element: Tree) -> EventName:
    namespace, local = split(element.tag)
    return event_name(namespace, local)


def _elements(parent: Tree) -> tuple[m.Element, ...]:
    count = sum(1 for _ in parent.iter()) - 1
    if count > ELEMENTS_MAX:
        _bad(f"{split(parent.tag)[1]} has {count} elements", f"Send at most {ELEMENTS_MAX}.")
    return tuple(map(_element, parent))


def _element(element: Tree) -> m.Element:
    name = split(element.tag)[1]
    units, accuracy = element.get("units"), element.get("accuracy")
    if len(element):
        return m.Element(name, tuple(map(_element, element)), units, accuracy)
    text = element.text or ""
    declared = element.get(f"{{{XSI}}}type")
    try:
        value = typed(text) if declared is None else typed_as(text, declared)
    except BadEvent as error:
        _bad(f"{name}: {error.problem}", error.remedy)
    return m.Element(name, value, units, accuracy)


def _event_of(element: Tree) -> m.PerformanceEvent:
    elements = _elements(element)
    stamps = [each for each in element if split(each.tag)[1] == TIME_STAMP]
    if len(stamps) != 1 or len(stamps[0]):
        local = split(element.tag)[1]
        _bad(
            f"the event {local[:80]} has {len(stamps) or 'no'} {TIME_STAMP}",
            "An event always says when it was made, as in "
            f"<{TIME_STAMP}>2000-11-09T21:51:45Z</{TIME_STAMP}>.",
        )
    time = (stamps[0].text or "").strip()
    read_stamp(time)
    others = tuple(each for each in elements if each.name != TIME_STAMP)
    return m.PerformanceEvent(_name(element), time, others)


def _content(message: m.Message, root: Tree, raw: bytes) -> bytes | None:
    if not isinstance(message, m.EventMessage | m.QueryReply) or message.event is None:
        return None
    element = _subject(root)
    assert element is not None, "the event was read from it"
    namespace, local = split(element.tag)
    if not is_canonical(namespace, local):
        return event_element(message.event).encode()
    return cut_from(raw, [element])[0]


# Extensions


def _extension(root: Tree, local: str) -> Tree | None:
    return next(root.iter(f"{{{EXTENSION}}}{local}"), None)


def _filter(root: Tree) -> str | None:
    found = _extension(root, "Filter")
    if found is None:
        return None
    if len(found):
        _bad("Filter holds elements", "Write it as in Load5 >= 5.0 and HostName = foo.gov.")
    return found.text or ""


def _options(root: Tree) -> m.Options | None:
    found = _extension(root, "Options")
    if found is None:
        return None
    role, after = found.get("role"), found.get("after")
    if role not in (None, "producer", "consumer"):
        _bad(f"the role {role[:40]!r} is none", "Say producer or consumer, or leave it out.")
    if after is not None and not (after.isascii() and after.isdigit() and len(after) <= 18):
        _bad(f"after is {after[:40]!r}", "Give a sequence number.")
    acknowledge = found.get("acknowledge")
    return m.Options(
        role,
        None if after is None else int(after),
        None if acknowledge is None else _id(acknowledge, "acknowledge", found),
        context=found.get("context") == "true",
        filtered=found.get("filtered") == "true",
    )


def _context(root: Tree) -> m.Context | None:
    found = _extension(root, "Context")
    if found is None:
        return None
    seq = found.get("seq") or ""
    if not (seq.isascii() and seq.isdigit() and len(seq) <= 18):
        _bad(f"the Context's seq is {seq[:40]!r}", "It is a sequence number.")
    return m.Context(int(seq), *((found.get(name) or "") for name in ("id", "source", "topic")))


# Messages


def _parameters(root: Tree) -> m.Parameters:
    subject = _subject(root)
    if subject is None:
        _bad(
            f"{split(root.tag)[1]} does not say which events",
            "Send an element with the event's name, as in <UptimeCPULoad "
            'xmlns="http://www.gridforum.org/Performance/EventParameters"/>.',
        )
    elements = tuple(
        each
        for each, tree in zip(_elements(subject), subject, strict=True)
        if split(tree.tag)[0] != EXTENSION
    )
    return m.Parameters(_name(subject), elements)


def _subscribe_request(root: Tree) -> m.SubscribeRequest:
    request_id = _request_id(root)
    subscription_id = _subscription_id(root)
    return m.SubscribeRequest(
        request_id, subscription_id, _parameters(root), _filter(root), _options(root)
    )


def _subscribe_reply(root: Tree) -> m.SubscribeReply:
    request_id = _request_id(root)
    given = _child_text(root, "SubscriptionID")
    return m.SubscribeReply(
        request_id,
        *_returned(root),
        None if given is None else _id(given, "SubscriptionID", root),
        _options(root),
    )


def _unsubscribe_request(root: Tree) -> m.UnsubscribeRequest:
    return m.UnsubscribeRequest(_request_id(root), _subscription_id(root))


def _unsubscribe_reply(root: Tree) -> m.UnsubscribeReply:
    return m.UnsubscribeReply(_request_id(root), *_returned(root))


def _event(root: Tree) -> m.EventMessage:
    subscription_id = _id(root.get("subscriptionID"), "subscriptionID", root)
    request_id = root.get("requestID")
    subject = _subject(root)
    error, detail = _child_text(root, "Error"), _child_text(root, "ErrorDetail")
    if subject is None and error is None:
        _bad("the message holds neither an event nor an Error", "Send one of them.")
    return m.EventMessage(
        subscription_id,
        None if subject is None else _event_of(subject),
        error,
        detail,
        None if request_id is None else _id(request_id, "requestID", root),
        _context(root),
    )


def _event_reply(root: Tree) -> m.EventReply:
    return m.EventReply(_request_id(root), *_returned(root))


def _query_request(root: Tree) -> m.QueryRequest:
    return m.QueryRequest(_request_id(root), _parameters(root), _filter(root))


def _query_reply(root: Tree) -> m.QueryReply:
    request_id = _request_id(root)
    returned, detail = _returned(root)
    subject = _subject(root)
    event = None if subject is None else _event_of(subject)
    return m.QueryReply(request_id, returned, detail, event)


def _event_names_request(root: Tree) -> m.EventNamesRequest:
    return m.EventNamesRequest(_request_id(root))


def _event_names_reply(root: Tree) -> m.EventNamesReply:
    request_id = _request_id(root)
    returned, detail = _returned(root)
    if len(root) > NAMES_MAX:
        _bad(f"the reply has {len(root)} elements", f"Send at most {NAMES_MAX}.")
    names = tuple(map(_listed, _children(root, "Event")))
    return m.EventNamesReply(request_id, returned, detail, names)


def _listed(element: Tree) -> EventName:
    local = (element.get("name") or "").strip()
    if not local:
        _bad("an Event of the list has no name", "Give each a name and a namespace.")
    return event_name((element.get("namespace") or "").strip(), local)


_READERS: dict[str, Callable[[Tree], m.Message]] = {
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
