"""What the catalog has of an advertisement: the document as it came, and what it is found by."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

import msgspec
from lxml import etree

from tocsin.event.value import Scalar
from tocsin.safexml import parse
from tocsin.topics.advertisement import Advertisement
from tocsin.topics.descriptors import Descriptors
from tocsin.topics.queries.words import words_of

# Between the words of two texts. It is a word to the index, and never one of a query.
BOUNDARY = "\ue000"


class IndexedAdvertisement(msgspec.Struct, frozen=True, kw_only=True):
    """`label` is the policy's: whoever asks names the labels that he may see."""

    uuid: str
    version: int
    topic: str
    creator: str  # the entity's id
    creator_name: str = ""
    institution: str = ""
    created_ns: int
    expires_ns: int
    label: str
    descriptors: Descriptors = Descriptors()
    document: bytes
    is_encrypted: bool = False


class IndexedWithdrawal(msgspec.Struct, frozen=True, kw_only=True):
    """The creator takes back this version and those before; kept until `expires_ns`, when the
    advertisement would have ended."""

    uuid: str
    version: int
    creator: str
    expires_ns: int
    document: bytes


class Outcome(Enum):
    """What became of an advertisement or a withdrawal."""

    STORED = auto()
    REPEATED = auto()  # it was there
    OLDER = auto()  # than what is known of the topic
    WITHDRAWN = auto()
    EXPIRED = auto()
    FOREIGN = auto()  # the topic is another creator's
    FULL = auto()
    CREATOR_FULL = auto()


def indexed(found: Advertisement, document: bytes, label: str) -> IndexedAdvertisement:
    """An advertisement that was checked, as the catalog keeps it."""
    return IndexedAdvertisement(
        uuid=found.uuid,
        version=found.version,
        topic=found.topic,
        creator=found.creator.eid,
        creator_name=found.creator.name,
        institution=found.creator.institution,
        created_ns=found.created_ns,
        expires_ns=found.expires_ns,
        label=label,
        descriptors=found.descriptors,
        document=document,
    )


def parsed_xml(advertisement: IndexedAdvertisement) -> etree._Element | None:
    """The XML descriptor without its comments; None if there is none. Raises BadXml."""
    text = advertisement.descriptors.xml
    return parse(text.encode(), what="the XML of the description") if text else None


def words(advertisement: IndexedAdvertisement, xml: etree._Element | None) -> Iterator[str]:
    """What a text query finds it by: the words of each text, and a boundary between two texts."""
    for text in _texts(advertisement, xml):
        yield from words_of(text)
        yield BOUNDARY


def lines(advertisement: IndexedAdvertisement, xml: bytes) -> str:
    """What a regular expression is looked for in, line by line: every form of descriptor."""
    described = advertisement.descriptors
    found = [
        advertisement.topic,
        *described.paths,
        *described.text.splitlines(),
        *described.keywords,
        *(f"{name}={_shown(value)}" for name, value in sorted(described.properties.items())),
        *xml.decode().splitlines(),
    ]
    return "\n".join(" ".join(line.split("\n")) for line in found if line)


def _texts(advertisement: IndexedAdvertisement, xml: etree._Element | None) -> Iterator[str]:
    described = advertisement.descriptors
    yield from (advertisement.topic, advertisement.creator_name, advertisement.institution)
    yield from described.paths
    yield described.text
    yield from described.keywords
    for name, value in sorted(described.properties.items()):
        yield f"{name} {_shown(value)}"
    if xml is not None:
        for element in xml.iter():
            yield from map(str, element.attrib.values())
            yield from (text for text in (element.text, element.tail) if text)


def _shown(value: Scalar) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
