"""Bytes to messages: with namespaces, whatever the prefixes, and both ways where the paper's text
and examples differ. A request that cannot be taken is refused with the reply that says why."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tocsin import safexml
from tocsin.errors import BadMessage, TocsinError
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.elements import (
    SHORT_BYTES_MAX,
    SHOWN_MAX,
    Tree,
    bad,
    event_of,
    parameters_of,
)
from tocsin.wire.gma.names import (
    EXTENSION,
    NAME_CHARS_MAX,
    NAMESPACE_CHARS_MAX,
    PROTOCOL,
    EventName,
    event_name,
    is_canonical,
    is_own,
)
from tocsin.wire.gma.plain import ID_CHARS_MAX, read_plain, read_plain_content
from tocsin.wire.gma.values import XML_SPACE
from tocsin.wire.gma.write import event_element
from tocsin.wire.soap.envelope import split
from tocsin.wire.soap.slices import cut_from

DETAIL_CHARS_MAX = 4_096
NAMES_MAX = 100_000  # in one EventNamesReply
NESTING_MAX = 20

_LISTED_TAGS = ("Event", f"{{{PROTOCOL}}}Event")
# `split` remembers the tags it has seen, so that those of strangers must be short.
_TAG_CHARS_MAX = NAME_CHARS_MAX + NAMESPACE_CHARS_MAX + len("{}")
# The paper's example of an EventNamesReply ends with the tag that the message once had.
_FORMER_END = b"</AvailableEventsReply>"
_FORMER_BEGIN = b"<AvailableEventsReply"


class _Parts(msgspec.Struct, frozen=True):
    """A message taken apart, with one look at each child."""

    root: Tree
    kind: str
    is_short: bool
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
    is_short = len(raw) <= SHORT_BYTES_MAX
    if not is_short:
        _check_tags(root)
    namespace, kind = split(root.tag)
    if kind == "AvailableEventsReply":
        kind = "EventNamesReply"
    reader = _READERS.get(kind)
    if reader is None:
        raise BadMessage(
            f"there is no message {kind[:SHOWN_MAX]!r}",
            remedy=f"There are {', '.join(sorted(_READERS))}.",
        )
    try:
        if namespace != PROTOCOL:
            bad(f"{kind} is in the namespace {namespace[:200]!r}", f"It belongs to {PROTOCOL}.")
        parts = _taken_apart(root, kind, is_short=is_short)
        return reader(parts), parts
    except TocsinError as error:
        raise _refused(error, kind, root) from None


def _refused(error: TocsinError, kind: str, root: Tree) -> BadMessage:
    """The error with the reply that reports it, if this was a request with an id to reply to."""
    refused = BadMessage(error.problem, remedy=error.remedy)
    request_id = (root.get("requestID") or "").strip(XML_SPACE)
    asked = _REQUESTS.get(kind)
    if asked is not None and 0 < len(request_id) <= ID_CHARS_MAX:
        refused.refusal = m.failure(asked, request_id, str(refused))
    return refused


def _check_tags(root: Tree) -> None:
    longest = max(len(str(element.tag)) for element in root.iter())
    if longest > _TAG_CHARS_MAX:
        bad(f"an element's name has {longest} characters", "Use shorter names and namespaces.")


# Parts that messages have in common


def _taken_apart(root: Tree, kind: str, *, is_short: bool) -> _Parts:
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
            bad(f"{kind} has more than one {local}", "Send one.")
        elif len(child):
            bad(f"{local} holds elements", f"Send {local} as text.")
        else:
            own[local] = child.text or ""
    return _Parts(root, kind, is_short, own, extensions, subjects)


def _request_id(parts: _Parts) -> str:
    return _id(parts.root.get("requestID"), "requestID", parts.kind)


def _subscription_id(parts: _Parts) -> str:
    return _id(parts.own.get("SubscriptionID"), "SubscriptionID", parts.kind)


def _id(text: str | None, what: str, whose: str) -> str:
    found = (text or "").strip(XML_SPACE)
    if not found:
        bad(f"{whose} has no {what}", f"Give it a {what}.")
    if len(found) > ID_CHARS_MAX:
        bad(f"a {what} has {len(found)} characters", f"Use at most {ID_CHARS_MAX}.")
    return found


def _returned(parts: _Parts) -> tuple[str, str | None]:
    returned = parts.own.get("Return", "").strip(XML_SPACE)
    if not returned:
        bad(f"{parts.kind} has no Return", "Say Success or Failure.")
    detail = parts.own.get("ReturnDetail")
    return returned[:ID_CHARS_MAX], None if detail is None else detail[:DETAIL_CHARS_MAX]


def _subject(parts: _Parts) -> Tree | None:
    """The one child that is neither the protocol's nor an extension: event or parameters."""
    subjects = parts.subjects
    if len(subjects) > 1:
        names = " and ".join(split(each.tag)[1][:SHOWN_MAX] for each in subjects[:2])
        bad(f"{parts.kind} holds {names}", "Send one event in one message.")
    return subjects[0] if subjects else None


# Extensions


def _filter(parts: _Parts) -> str | None:
    """The filter, which may also stand among the parameters."""
    found = parts.extensions.get("Filter")
    if found is None and parts.subjects:
        found = parts.subjects[0].find(f"{{{EXTENSION}}}Filter")
    if found is None:
        return None
    if len(found):
        bad("Filter holds elements", "Write it as in Load5 >= 5.0 and HostName = foo.gov.")
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
        bad(f"the role {role[:40]!r} is not known", "Say producer or consumer, or leave it out.")
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
        bad(f"{what} is {text[:40]!r}", "Give a sequence number.")
    return int(text)


# Messages


def _parameters(parts: _Parts) -> m.Parameters:
    subject = _subject(parts)
    if subject is None:
        bad(
            f"{parts.kind} does not say which events",
            "Send an element with the event's name, as in <UptimeCPULoad "
            'xmlns="http://www.gridforum.org/Performance/EventParameters"/>.',
        )
    return parameters_of(subject, is_short=parts.is_short)


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
    get, own = parts.root.get, parts.own
    subscription_id = _id(get("subscriptionID"), "subscriptionID", parts.kind)
    subject, error = _subject(parts), own.get("Error")
    if subject is None and error is None:
        bad("the message holds neither an event nor an Error", "Send one of them.")
    return m.EventMessage(
        subscription_id,
        None if subject is None else event_of(subject, is_short=parts.is_short),
        error,
        own.get("ErrorDetail"),
        None if get("requestID") is None else _request_id(parts),
        _context(parts) if parts.extensions else None,
    )


def _event_reply(parts: _Parts) -> m.EventReply:
    return m.EventReply(_request_id(parts), *_returned(parts))


def _query_request(parts: _Parts) -> m.QueryRequest:
    return m.QueryRequest(_request_id(parts), _parameters(parts), _filter(parts))


def _query_reply(parts: _Parts) -> m.QueryReply:
    subject = _subject(parts)
    event = None if subject is None else event_of(subject, is_short=parts.is_short)
    return m.QueryReply(_request_id(parts), *_returned(parts), event)


def _event_names_request(parts: _Parts) -> m.EventNamesRequest:
    return m.EventNamesRequest(_request_id(parts))


def _event_names_reply(parts: _Parts) -> m.EventNamesReply:
    if len(parts.subjects) > NAMES_MAX:
        bad(f"the reply lists {len(parts.subjects)} names", f"Send at most {NAMES_MAX}.")
    names = tuple(_listed(each) for each in parts.subjects if each.tag in _LISTED_TAGS)
    return m.EventNamesReply(_request_id(parts), *_returned(parts), names)


def _listed(element: Tree) -> EventName:
    local = (element.get("name") or "").strip(XML_SPACE)
    if not local:
        bad("an Event of the list has no name", "Give each a name and a namespace.")
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
