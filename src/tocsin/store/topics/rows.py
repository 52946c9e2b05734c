"""An advertisement as rows of the catalog, and the tokens of the two indexes of full text.

A token begins with the number of a label, so that the entries of one label are apart from those of
the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from struct import Struct
from zlib import crc32

import msgspec
from lxml import etree

from tocsin.errors import BadAdvertisement
from tocsin.event.facets import FLAG, NUMBER, TEXT, facets
from tocsin.topics.queries.grams import grams_of
from tocsin.topics.queries.indexed import (
    BOUNDARY,
    IndexedAdvertisement,
    lines,
    parsed_xml,
    words,
)
from tocsin.topics.queries.requirement import AllOf, AnyOf, Requirement, Text
from tocsin.topics.queries.words import Term
from tocsin.topics.queries.xml_values import values_of

DOCUMENT_BYTES_MAX = 96 << 10  # an advertisement has at most 64 kB, its certificates a few
LABEL_CHARS_MAX = 256
VALUES_MAX = 2_000  # of one XML document; 8 kB of it cannot have more than some 1,500

_INT64_MAX = (1 << 63) - 1
_hash = Struct(">q")

PropertyRow = tuple[str, float | None, str | None, int | None]


class Rows(msgspec.Struct, frozen=True):
    """All that the catalog keeps of an advertisement, worked out before anything is written."""

    advertisement: IndexedAdvertisement
    words: tuple[str, ...]
    grams: tuple[str, ...]
    properties: tuple[PropertyRow, ...]
    hashes: tuple[int, ...]
    xml: bytes
    lines: bytes

    @property
    def size_bytes(self) -> int:
        """What counts towards the limits: the document, and as much as is indexed."""
        return len(self.advertisement.document) + len(self.lines) + len(self.xml)


def rows_of(advertisement: IndexedAdvertisement) -> Rows:
    """Raises BadAdvertisement if it cannot be kept, BadXml for its XML."""
    _check(advertisement)
    root = parsed_xml(advertisement)
    # Without comments, processing instructions and CDATA sections: every evaluator sees the same.
    xml = b"" if root is None else etree.tostring(root, encoding="utf-8")
    values = set() if root is None else values_of(root)
    if len(values) > VALUES_MAX:
        raise _refused(f"its XML has {len(values)} values")
    found = lines(advertisement, xml)
    return Rows(
        advertisement,
        tuple(words(advertisement, root)),
        tuple(grams_of(found.split("\n"))),
        tuple(_properties(advertisement)),
        tuple(sorted({hash_of(value) for value in values})),
        xml,
        found.encode(),
    )


def hash_of(value: str) -> int:
    """In the index of XML values, where two values may share one: candidates are evaluated."""
    found: int = _hash.unpack(blake2b(value.encode(), digest_size=8).digest())[0]
    return found


def checksum(label: int, uuid: str, version: int, document: bytes) -> int:
    return crc32(document, crc32(f"{label}/{uuid}/{version}".encode()))


def pack_hashes(hashes: Iterable[int]) -> bytes:
    return b"".join(map(_hash.pack, hashes))


def unpack_hashes(packed: bytes) -> list[int]:
    return [each for (each,) in _hash.iter_unpack(packed)]


def word_tokens(label: int, found: Iterable[str]) -> str:
    """Of `words`, as the text that the index is given."""
    return " ".join(word if word == BOUNDARY else f"{label}z{word}" for word in found)


def gram_tokens(label: int, found: Iterable[str]) -> str:
    return " ".join([f"{label}z{gram}" for gram in found])


def match_words(label: int, terms: Iterable[Term]) -> str:
    """The query of the index for advertisements of this label with all terms."""
    return " AND ".join(
        f'"{word_tokens(label, term.words)}"{" *" if term.is_prefix else ""}' for term in terms
    )


def match_grams(label: int, required: Requirement) -> str:
    match required:
        case Text(gram):
            return f'"{gram_tokens(label, (gram,))}"'
        case AllOf(parts):
            return f"({' AND '.join(match_grams(label, part) for part in parts)})"
        case AnyOf(parts):
            return f"({' OR '.join(match_grams(label, part) for part in parts)})"


def _properties(advertisement: IndexedAdvertisement) -> Iterable[PropertyRow]:
    """Each in every way in which it can be compared, as event attributes are."""
    for name, value in advertisement.descriptors.properties.items():
        kinds = facets({name: value})
        number, text = kinds.get((name, NUMBER)), kinds.get((name, TEXT))
        flag = kinds.get((name, FLAG))
        assert isinstance(number, float | None)
        assert isinstance(text, str | None)
        yield name, number, text, None if flag is None else int(flag)


def _check(advertisement: IndexedAdvertisement) -> None:
    size = len(advertisement.document)
    if size > DOCUMENT_BYTES_MAX:
        raise _refused(f"it has {size} bytes, over {DOCUMENT_BYTES_MAX}")
    if not 0 <= advertisement.created_ns <= advertisement.expires_ns <= _INT64_MAX:
        raise _refused("it ends before it begins, or at an impossible time")
    if not 1 <= advertisement.version <= _INT64_MAX:
        raise _refused(f"its version is {advertisement.version}")
    if len(advertisement.label) > LABEL_CHARS_MAX:
        raise _refused("the policy gave it a label that is too long")


def _refused(why: str) -> BadAdvertisement:
    return BadAdvertisement(
        f"the advertisement cannot be kept: {why}", remedy="Describe the topic more shortly."
    )
