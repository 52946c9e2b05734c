"""Topics between the Web-services dialects and ours.

Theirs are QName paths, ours are plain ones. An event keeps both: `topic` is the path of local
names, the extension `topicns` the namespace of its root, and `wstopic` the expression as it was
sent, with the prefixes it uses. A subscription that names a namespace gets events of that namespace
and events that name none; one without a prefix asks for the path alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from lxml import etree

from tocsin.errors import BadTopic, BadTopicPattern
from tocsin.event.event import Event
from tocsin.event.topic import TopicPattern, valid_topic
from tocsin.wire.soap import names
from tocsin.wire.soap.envelope import Envelope, blocks, split, text_of
from tocsin.wire.soap.fault import escaped, quoted
from tocsin.wire.soap.names import (
    ONVIF_CONCRETE_SET,
    ONVIF_TOPICS,
    TOPICS10_SIMPLE,
    TOPICS13,
    WSE_TOPIC,
    XPATH10,
)

Element = etree._Element
Filters = list[object]

EXPRESSION_CHARS_MAX: Final = 4_096
_USUAL: Final = {"tns1": ONVIF_TOPICS}  # which ONVIF's examples use undeclared

# Only where a name begins: else a long text costs its square.
_PREFIX = re.compile(r"(?<![^\s:/|*.\[\]()@])([^\s:/|*.\[\]()@]++):(?=[^:\s])")
_NO_PATH = re.compile(r"[\[\]()@$'\"]")
_PREFIX_NAME = re.compile(r"(?!xml)[^\W\d][\w.-]{0,63}", re.I)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}:[!#-;=?-\[\]_a-z~\u00a0-\ud7ff]{0,1024}")
_DIALECTS12: Final = "http://docs.oasis-open.org/wsn/2004/06/TopicExpression/"
_ENDINGS: Final = {
    "simple": "simple",
    "concrete": "concrete",
    "full": "full",
    "concreteset": "full",  # ONVIF's: concrete paths between bars, `//.` for whatever is below
}


class TopicName(msgspec.Struct, frozen=True):
    """A topic as it was sent: the expression, and what the prefixes in it stand for."""

    text: str
    namespaces: tuple[tuple[str, str], ...] = ()
    undeclared: str = ""  # a prefix in it that stands for nothing

    @property
    def namespace(self) -> str:
        """The namespace of the root topic, empty if none is known."""
        prefix = _PREFIX.match(self.text)
        return dict(self.namespaces).get(prefix[1], "") if prefix else ""

    @property
    def path(self) -> str:
        """The topic as a path of local names, not yet checked."""
        return _PREFIX.sub("", self.text).strip("/")


def read_topic(element: Element | None) -> TopicName | None:
    """The topic that an element of a notification names; None if there is no text in it."""
    text = text_of(element)
    if element is None or not text:
        return None
    topic = topic_name(text, element.nsmap)
    # Real publishers (zeep for one) use prefixes that they do not declare. Such a prefix says
    # nothing, and sent on it would say nothing to anybody: what counts is the path.
    return TopicName(topic.path) if topic.undeclared else topic


def topic_name(text: str, scope: Mapping[str | None, str]) -> TopicName:
    """A topic expression with those of the namespaces in scope that it uses."""
    prefixes = dict.fromkeys(_PREFIX.findall(text))
    bound: list[tuple[str, str]] = []
    undeclared = ""
    for prefix in prefixes:
        uri = scope.get(prefix) or _USUAL.get(prefix)
        if uri:
            bound.append((prefix, uri))
        else:
            undeclared = prefix
    return TopicName(text, tuple(bound), undeclared)


def _undeclared(topic: TopicName) -> tuple[str, str]:
    """The problem with a topic whose prefix stands for nothing, and the remedy."""
    prefix = topic.undeclared[:80]
    return (
        f"the prefix {prefix!r} in the topic {topic.text[:80]!r} is not declared",
        f"Declare it on the topic's element: xmlns:{prefix}.",
    )


def topic_context(topic: TopicName) -> tuple[str, dict[str, str]]:
    """The path and the extensions of an event with this topic; BadTopic if it can have none."""
    if topic.undeclared:
        problem, remedy = _undeclared(topic)
        raise BadTopic(problem, remedy=remedy)
    path = valid_topic(topic.path)
    extensions: dict[str, str] = {}
    if topic.namespace:
        extensions["topicns"] = topic.namespace
    if topic.text != path:
        bindings = [f"{prefix}={uri}" for prefix, uri in topic.namespaces if " " not in uri]
        extensions["wstopic"] = " ".join([*bindings, topic.text])
    return path, extensions


def topic_of(event: Event) -> TopicName | None:
    """The topic as a Web-services consumer gets it."""
    if not event.topic:
        return None
    sent = event.extensions.get("wstopic")
    if isinstance(sent, str):
        *bindings, text = sent.split(" ")
        pairs = tuple((p, uri) for p, _, uri in (each.partition("=") for each in bindings))
        topic = topic_name(text, dict(pairs))
        # Any publisher can set an extension: what is sent out must still be well-formed.
        if (
            topic.path == event.topic
            and not topic.undeclared
            and all(_can_bind(p, uri) for p, uri in topic.namespaces)
        ):
            return topic
    namespace = event.extensions.get("topicns")
    if isinstance(namespace, str) and _can_bind("tns", namespace):
        return TopicName(f"tns:{event.topic}", (("tns", namespace),))
    return TopicName(event.topic)


def _can_bind(prefix: str, uri: str) -> bool:
    """False for what would not be a namespace declaration: any publisher can set an extension."""
    return _PREFIX_NAME.fullmatch(prefix) is not None and _URI.fullmatch(uri) is not None


def write_topic(namespace: str, event: Event, spec: str) -> bytes:
    """The Topic element of a notification; empty for an event without one where it may lack."""
    topic = topic_of(event)
    if topic is None:
        if spec == "wsn13":
            return b""
        topic = TopicName(WSE_TOPIC)
    own = "wsnt"
    bindings = dict(topic.namespaces)
    while own in bindings:
        own += "0"
    declared = b"".join(
        b' xmlns:%b="%b"' % (prefix.encode(), quoted(uri)) for prefix, uri in bindings.items()
    )
    return b'<%b:Topic xmlns:%b="%b"%b Dialect="%b">%b</%b:Topic>' % (
        own.encode(),
        own.encode(),
        namespace.encode(),
        declared,
        dialect_uri(spec, is_root="/" not in topic.path).encode(),
        escaped(topic.text),
        own.encode(),
    )


def dialect_uri(spec: str, *, is_root: bool) -> str:
    """How a concrete topic is written in a specification."""
    name = "Simple" if is_root else "Concrete"
    if spec == "wsn12":
        return _DIALECTS12 + name
    if spec in ("wsn10", "wse04"):
        return TOPICS10_SIMPLE
    return f"{TOPICS13}/TopicExpression/{name}"


def dialect_kind(uri: str) -> str | None:
    """simple, concrete, full or xpath; None for what is no dialect of topics.

    Clients spell these URIs with many small mistakes: the last word of it decides.
    """
    uri = uri.strip()
    if uri == XPATH10:
        return "xpath"
    if "topic" not in uri.lower() and uri != ONVIF_CONCRETE_SET:
        return None
    return _ENDINGS.get(uri.rstrip("/#").rpartition("/")[2].rpartition("#")[2].lower())


def topic_filters(
    text: str, scope: Mapping[str | None, str], kind: str, *, names_only: bool = False
) -> Filters:
    """Filters for the topics that an expression selects; BadTopicPattern if it is none.

    `names_only`: the original's rule, by which namespaces do not count and `>` is everything.
    """
    text = text.strip()
    if not text or len(text) > EXPRESSION_CHARS_MAX:
        raise BadTopicPattern(
            "the topic expression is empty or too long",
            remedy=f"Name a topic, in at most {EXPRESSION_CHARS_MAX} characters.",
        )
    if kind == "xpath":
        namespaces = {prefix: uri for prefix, uri in scope.items() if prefix}
        return [{"xpath": {"expression": text, "namespaces": namespaces, "on": "topic"}}]
    if names_only and _PREFIX.sub("", text) == ">":
        return []
    if _NO_PATH.search(text):
        raise BadTopicPattern(
            f"topic expression {text[:80]!r} has characters that only XPath uses",
            remedy="Use names, / and the wildcards of the dialect.",
        )
    choices: Filters = []
    for each in text.split("|") if kind == "full" else [text]:
        choices.append(_choice(each.strip(), scope, kind, names_only=names_only))
    return [{"any": choices}] if len(choices) > 1 else _unpacked(choices[0])


def _choice(text: str, scope: Mapping[str | None, str], kind: str, *, names_only: bool) -> object:
    topic = topic_name(text, scope)
    if topic.undeclared and not names_only:
        problem, remedy = _undeclared(topic)
        raise BadTopicPattern(problem, remedy=remedy)
    path = _PREFIX.sub("", text)
    if kind != "full":
        path = path.strip("/")
    parts: Filters = [{"topic": str(TopicPattern.parse(path, kind))}]
    if topic.namespace and not names_only:
        absent: object = {"not": {"filter": "topicns exists"}}
        parts.append({"any": [absent, {"exact": {"topicns": topic.namespace}}]})
    return {"all": parts} if len(parts) > 1 else parts[0]


def _unpacked(choice: object) -> Filters:
    if isinstance(choice, dict) and "all" in choice:
        return list(choice["all"])
    return [choice]


_TOPIC_NAMES: Final = frozenset({"Topic", "TopicExpression", "topic"})
_TOPIC_NAMESPACES: Final = frozenset({names.WSN10, names.WSN12, names.WSN13, names.TOCSIN})


def topic_block(envelope: Envelope) -> etree._Element | None:
    """The header block that names a topic: a specification's, else one of any namespace or none.

    A consumer's reference may hold one, and then it comes back here as a header (paper 000, IV.B).
    """
    other: etree._Element | None = None
    for block in blocks(envelope):
        namespace, name = split(block.tag)
        if name not in _TOPIC_NAMES:
            continue
        if namespace in _TOPIC_NAMESPACES:
            return block
        if other is None and _can_be_topic(block):
            other = block
    return other


def _can_be_topic(block: etree._Element) -> bool:
    """False for a block of somebody's own that is called so and holds something else."""
    topic = None if len(block) else read_topic(block)
    if topic is None:
        return False
    try:
        valid_topic(topic.path)
    except BadTopic:
        return False
    return True
