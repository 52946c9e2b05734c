"""Synopses: what the events of a topic look like, for each way to write a topic (paper 003,
sections 2 and 3), and where the UUID of the topic goes in it.

Whatever the type, the events are published on a topic of levels with the UUID as one of them. So
every protocol that can carry a topic can publish them, and they are matched as everything is. The
rest of a synopsis says what the events of the topic have beside that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from tocsin.access.delegation.protected import is_topic_uuid, owned
from tocsin.errors import BadSynopsis, TocsinError
from tocsin.event.facets import number_of
from tocsin.event.filter import All, Filter, Operator, Predicate, Sql, TopicIs, TopicMatches, XPath
from tocsin.event.topic import TopicPattern, valid_topic
from tocsin.event.topic_levels import MANY
from tocsin.event.topic_regex import compile_topic_regex
from tocsin.event.value import Scalar

PATH_CHARS_MAX: Final = 512
PATH_LEVELS_MAX: Final = 16  # so that something can be published below the topic
PAIRS_MAX: Final = 32
TAG_CHARS_MAX: Final = 64
VALUE_CHARS_MAX: Final = 256
EXPRESSION_CHARS_MAX: Final = 512
REGEX_CHARS_MAX: Final = 180  # with the UUID before it, what an expression over topics may have
NAMESPACES_MAX: Final = 16
INTEGER_BITS_MAX: Final = 63
INTEGER: Final = "integer"  # the attribute by which events of an integer topic say theirs

_SAMPLE: Final = "00000000-0000-870c-8000-000000000000"
_TAG: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Template(msgspec.Struct, frozen=True):
    """What an event of the topic needs: a publisher fills in what is None."""

    topic: str  # or any topic below it
    below: str = ""  # a regular expression of the levels that have to follow the topic
    attributes: Mapping[str, Scalar | None] = {}
    payload: str = ""  # in words, where the payload has to be of some form


class Synopsis(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """What all have: levels that the creator wants before the UUID, and the topic itself, which is
    empty until the UUID is placed."""

    path: str = ""
    topic: str = ""


class StringSynopsis(Synopsis, frozen=True, tag="string"):
    """Levels with slashes between them, and nothing else."""


class IntegerSynopsis(Synopsis, frozen=True, tag="integer"):
    """An integer, which the events of the topic have as their attribute `integer`."""

    integer: int | None = None  # None: each event has its own


class PairsSynopsis(Synopsis, frozen=True, tag="pairs"):
    """Tags and values; the events have those whose value is None with any value."""

    pairs: Mapping[str, Scalar | None]


class PropertiesSynopsis(Synopsis, frozen=True, tag="properties"):
    """Properties for which a predicate in the SQL of CloudEvents holds."""

    predicate: str


class XmlSynopsis(Synopsis, frozen=True, tag="xml"):
    """XML documents for which an XPath expression holds."""

    xpath: str
    namespaces: Mapping[str, str] = {}


class RegexSynopsis(Synopsis, frozen=True, tag="regex"):
    """Topics below the UUID for which a regular expression (RE2) holds."""

    regex: str


AnySynopsis = (
    StringSynopsis
    | IntegerSynopsis
    | PairsSynopsis
    | PropertiesSynopsis
    | XmlSynopsis
    | RegexSynopsis
)


def place(synopsis: AnySynopsis, uuid: str) -> AnySynopsis:
    """The synopsis with the UUID: after the levels that were asked for, or in their place where
    there are none. Raises BadSynopsis."""
    assert is_topic_uuid(uuid), uuid
    check_placeholder(synopsis)
    topic = f"{synopsis.path}/{uuid}" if synopsis.path else uuid
    return msgspec.structs.replace(synopsis, topic=topic)


def uuid_of(synopsis: AnySynopsis) -> str:
    """The UUID that is placed in it. Raises BadSynopsis if none is."""
    found = owned(synopsis.topic)
    if found is None or found.below or "/".join(found.above) != synopsis.path:
        raise BadSynopsis(
            "the synopsis has no UUID of a topic at its end",
            remedy="Only one of an advertisement has; have the topic created.",
        )
    return found.uuid


def check_placeholder(synopsis: AnySynopsis) -> None:
    """Raise BadSynopsis for one that cannot be asked for."""
    if synopsis.topic:
        raise BadSynopsis(
            "the synopsis names its topic already",
            remedy="Leave the topic out: the topic discovery node makes it.",
        )
    _check_path(synopsis.path)
    match synopsis:
        case IntegerSynopsis(integer=integer):
            if integer is not None and integer.bit_length() > INTEGER_BITS_MAX:
                raise BadSynopsis("the integer is too large", remedy="Give one of 64 bits.")
        case PairsSynopsis(pairs=pairs):
            _check_pairs(pairs)
        case PropertiesSynopsis(predicate=predicate):
            _check_predicate(predicate)
        case XmlSynopsis(xpath=xpath, namespaces=namespaces):
            _check_xpath(xpath, namespaces)
        case RegexSynopsis(regex=regex):
            _check_regex(regex)


def template(synopsis: AnySynopsis) -> Template:
    """What an event needs to be one of the topic."""
    match synopsis:
        case IntegerSynopsis(topic=topic, integer=integer):
            return Template(topic, attributes={INTEGER: integer})
        case PairsSynopsis(topic=topic, pairs=pairs):
            return Template(topic, attributes=pairs)
        case PropertiesSynopsis(topic=topic, predicate=predicate):
            return Template(topic, payload=f"properties with {predicate}")
        case XmlSynopsis(topic=topic, xpath=xpath):
            return Template(topic, payload=f"an XML document with {xpath}")
        case RegexSynopsis(topic=topic, regex=regex):
            return Template(topic, below=regex)
        case _:
            return Template(synopsis.topic)


def filter(synopsis: AnySynopsis) -> Filter:
    """The events of the topic, and of those below it."""
    below = TopicIs(TopicPattern((*synopsis.topic.split("/"), MANY)))
    match synopsis:
        case IntegerSynopsis(integer=integer):
            return All((below, _pair(INTEGER, integer)))
        case PairsSynopsis(pairs=pairs):
            return All((below, *(_pair(tag, value) for tag, value in sorted(pairs.items()))))
        case PropertiesSynopsis(predicate=predicate):
            return All((below, Sql(predicate)))
        case XmlSynopsis(xpath=xpath, namespaces=namespaces):
            return All((below, XPath(xpath, tuple(sorted(namespaces.items())))))
        case RegexSynopsis(regex=regex):
            return All((below, TopicMatches(_placed_regex(regex, uuid_of(synopsis)))))
        case _:
            return below


def _placed_regex(regex: str, uuid: str) -> str:
    return f"(?:.*/)?{uuid}/(?:{regex})"


def _pair(tag: str, value: Scalar | None) -> Predicate:
    if value is None:
        return Predicate(tag, Operator.EXISTS)
    return Predicate(tag, Operator.EQ, value)


def _check_path(path: str) -> None:
    if not path:
        return
    try:
        valid_topic(path)
    except TocsinError as error:
        raise BadSynopsis(error.problem, remedy=error.remedy) from None
    if len(path) > PATH_CHARS_MAX or path.count("/") >= PATH_LEVELS_MAX:
        raise BadSynopsis(
            "the path of the topic is too long",
            remedy=f"Use at most {PATH_CHARS_MAX} characters and {PATH_LEVELS_MAX} levels.",
        )
    if owned(path) is not None:
        raise BadSynopsis(
            f"the path {path[:80]!r} is below somebody's topic",
            remedy="Its owner can grant you the right to publish there, without another topic.",
        )


def _check_pairs(pairs: Mapping[str, Scalar | None]) -> None:
    if not 1 <= len(pairs) <= PAIRS_MAX:
        raise BadSynopsis(f"the synopsis has {len(pairs)} pairs", remedy=f"Give 1 to {PAIRS_MAX}.")
    for tag, value in pairs.items():
        if not _TAG.fullmatch(tag) or len(tag) > TAG_CHARS_MAX or tag == "topic":
            raise BadSynopsis(
                f"{tag[:64]!r} cannot be a tag",
                remedy="Use letters, digits and underscores; the tag `topic` has the UUID.",
            )
        if isinstance(value, str):
            is_good = len(value) <= VALUE_CHARS_MAX
        else:
            is_good = value is None or isinstance(value, bool) or number_of(value) is not None
        if not is_good:
            raise BadSynopsis(
                f"the value of the tag {tag} is too long or too large",
                remedy=f"Give a finite number, or a text of at most {VALUE_CHARS_MAX} characters.",
            )


def _check_predicate(predicate: str) -> None:
    from tocsin.event.cesql import compile_sql

    _check_expression(predicate)
    try:
        compile_sql(predicate)
    except TocsinError as error:
        raise BadSynopsis(f"the predicate: {error.problem}", remedy=error.remedy) from None


def _check_xpath(xpath: str, namespaces: Mapping[str, str]) -> None:
    from tocsin.event.xpath import check_xpath

    _check_expression(xpath)
    if len(namespaces) > NAMESPACES_MAX:
        raise BadSynopsis("too many namespaces", remedy=f"Give at most {NAMESPACES_MAX}.")
    try:
        check_xpath(XPath(xpath, tuple(sorted(namespaces.items()))))
    except TocsinError as error:
        raise BadSynopsis(f"the XPath: {error.problem}", remedy=error.remedy) from None


def _check_regex(regex: str) -> None:
    if not regex or len(regex) > REGEX_CHARS_MAX:
        raise BadSynopsis(
            f"the regular expression has {len(regex)} characters",
            remedy=f"Give 1 to {REGEX_CHARS_MAX}.",
        )
    try:
        # Alone too: it must not close the group that it is put into.
        compile_topic_regex(regex)
        compile_topic_regex(_placed_regex(regex, _SAMPLE))
    except TocsinError as error:
        raise BadSynopsis(error.problem, remedy=error.remedy) from None


def _check_expression(text: str) -> None:
    if not text.strip() or len(text) > EXPRESSION_CHARS_MAX:
        raise BadSynopsis(
            f"the expression has {len(text)} characters",
            remedy=f"Give 1 to {EXPRESSION_CHARS_MAX}.",
        )
