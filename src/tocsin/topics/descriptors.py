"""How the creator of a topic describes it, in every form that can be searched: paths, a text,
keywords, properties, and an XML document (paper 003, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from tocsin.errors import BadDescriptors, TocsinError
from tocsin.event.facets import number_of
from tocsin.event.topic import valid_topic
from tocsin.event.value import Scalar
from tocsin.safexml import parse as parse_xml

PATHS_MAX: Final = 32
TEXT_CHARS_MAX: Final = 2_048
KEYWORDS_MAX: Final = 32
KEYWORD_CHARS_MAX: Final = 64
PROPERTIES_MAX: Final = 64
PROPERTY_NAME_CHARS_MAX: Final = 64
PROPERTY_CHARS_MAX: Final = 256
XML_BYTES_MAX: Final = 8 << 10
XML_ELEMENTS_MAX: Final = 250  # what an XPath is asked of it costs time by their number
DESCRIPTORS_BYTES_MAX: Final = 12 << 10  # of all, as JSON


class Descriptors(msgspec.Struct, frozen=True, omit_defaults=True):
    """Any of these may be left out."""

    paths: tuple[str, ...] = ()  # with slashes between their levels
    text: str = ""
    keywords: tuple[str, ...] = ()
    properties: Mapping[str, Scalar] = {}
    xml: str = ""


def check_descriptors(found: Descriptors) -> None:
    """Raise BadDescriptors for any that a topic discovery node does not keep."""
    _check_count("paths", len(found.paths), PATHS_MAX)
    _check_count("characters of text", len(found.text), TEXT_CHARS_MAX)
    _check_count("keywords", len(found.keywords), KEYWORDS_MAX)
    _check_count("properties", len(found.properties), PROPERTIES_MAX)
    for path in found.paths:
        try:
            valid_topic(path)
        except TocsinError as error:
            raise BadDescriptors(
                f"a path of the description: {error.problem}", remedy=error.remedy
            ) from None
    for keyword in found.keywords:
        if not keyword.strip() or len(keyword) > KEYWORD_CHARS_MAX or not keyword.isprintable():
            raise BadDescriptors(
                f"{keyword[:64]!r} cannot be a keyword",
                remedy=f"Use words of at most {KEYWORD_CHARS_MAX} printable characters.",
            )
    for name, value in found.properties.items():
        _check_property(name, value)
    _check_xml(found.xml)
    size = len(msgspec.json.encode(found))
    _check_count("bytes of description", size, DESCRIPTORS_BYTES_MAX)


def _check_property(name: str, value: Scalar) -> None:
    if not name.isidentifier() or not name.isascii() or len(name) > PROPERTY_NAME_CHARS_MAX:
        raise BadDescriptors(
            f"{name[:64]!r} cannot be the name of a property",
            remedy="Use letters, digits and underscores, with a letter first.",
        )
    if isinstance(value, str):
        if len(value) > PROPERTY_CHARS_MAX:
            raise BadDescriptors(
                f"the property {name} has {len(value)} characters",
                remedy=f"Give at most {PROPERTY_CHARS_MAX}; the text may have more.",
            )
    elif not isinstance(value, bool) and number_of(value) is None:
        raise BadDescriptors(
            f"the property {name} is a number that cannot be compared",
            remedy="Give a finite number that a double can hold.",
        )


def _check_xml(text: str) -> None:
    if not text:
        return
    content = text.encode("utf-8", "replace")
    _check_count("bytes of XML", len(content), XML_BYTES_MAX)
    try:
        root = parse_xml(content)
    except TocsinError as error:
        raise BadDescriptors(
            f"the XML of the description: {error.problem}", remedy=error.remedy
        ) from None
    _check_count("elements of XML", sum(1 for _ in root.iter()), XML_ELEMENTS_MAX)


def _check_count(what: str, count: int, count_max: int) -> None:
    if count > count_max:
        raise BadDescriptors(
            f"the topic is described by {count} {what}", remedy=f"Give at most {count_max}."
        )
