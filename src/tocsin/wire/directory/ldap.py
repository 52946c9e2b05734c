"""The directory as LDAP entries, for sites that run LDAP: in standard classes, or with ours too.

A stock server knows applicationProcess, uidObject and labeledURIObject (RFC 4519, 2079: core) and
domainRelatedObject (RFC 4524: cosine). These have a name, a host and an address, but no word for
events: in the standard form those are descriptions, each a line that a search can ask for. With
the schema below, which a site may add, they are attributes of their own.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64encode
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final, Literal, get_args

from tocsin.event.event import Value
from tocsin.event.filter_eval import canonical_text
from tocsin.event.instant import NS_PER_S, rfc3339
from tocsin.event.value import Quantity
from tocsin.wire.directory.distinguished import SUFFIX_CLASSES, Part, Suffix, joined
from tocsin.wire.directory.entry import KINDS, Entry

Form = Literal["standard", "tocsin"]
FORMS: tuple[Form, ...] = get_args(Form)
SUFFIX_DEFAULT: Final = "o=grid"

# An arc that nobody else has: a random UUID under 2.25 (ITU-T X.667), so nobody had to be asked.
_ARC: Final = "2.25.335307926532557218529374396201982347431"
_TEXT: Final = "SYNTAX 1.3.6.1.4.1.1466.115.121.1.15"
_EXACT: Final = "EQUALITY caseExactMatch SUBSTR caseExactSubstringsMatch"
_TIME: Final = "SYNTAX 1.3.6.1.4.1.1466.115.121.1.24"
_ORDERED: Final = "EQUALITY generalizedTimeMatch ORDERING generalizedTimeOrderingMatch"

_ATTRIBUTE_TYPES: Final = (
    ("tocsinKind", "producer or consumer", f"EQUALITY caseIgnoreMatch {_TEXT} SINGLE-VALUE"),
    ("tocsinEvent", "name of an event that is offered", f"{_EXACT} {_TEXT}"),
    ("tocsinParameter", "an event and a parameter of it", f"{_EXACT} {_TEXT}"),
    ("tocsinAttribute", "name=value", f"{_EXACT} {_TEXT}"),
    ("tocsinExpires", "when the lease ends", f"{_ORDERED} {_TIME} SINGLE-VALUE"),
)

_STANDARD_CLASSES: Final = (
    "top",
    "applicationProcess",
    "uidObject",
    "domainRelatedObject",
    "labeledURIObject",
)
_OUR_CLASS: Final = "tocsinOffer"

Attribute = tuple[str, str]


def directory_records(entries: Iterable[Entry], suffix: Suffix, form: Form) -> Iterator[str]:
    """The whole of a file, in pieces: its head, the entries above, then each entry."""
    yield VERSION
    top = suffix[0]
    classes = [("objectClass", "top"), ("objectClass", SUFFIX_CLASSES[top.attribute])]
    yield record(joined(*suffix), [*classes, (top.attribute, top.value)])
    for kind in KINDS:
        unit = f"{kind}s"
        attributes = [("objectClass", "top"), ("objectClass", "organizationalUnit"), ("ou", unit)]
        yield record(joined(Part("ou", unit), *suffix), attributes)
    for entry in entries:
        yield _record(entry, suffix, form)


def schema_ldif() -> str:
    """Our attributes and our class, as an entry of OpenLDAP's cn=config."""
    types = [
        f"( {_ARC}.1.{number} NAME '{name}' DESC '{words}' {rest} )"
        for number, (name, words, rest) in enumerate(_ATTRIBUTE_TYPES, 1)
    ]
    names = " $ ".join(name for name, _, _ in _ATTRIBUTE_TYPES)
    ours = (
        f"( {_ARC}.2.1 NAME '{_OUR_CLASS}' DESC 'a producer or consumer of events' "
        f"SUP top AUXILIARY MAY ( {names} ) )"
    )
    attributes = [
        ("objectClass", "olcSchemaConfig"),
        ("cn", "tocsin"),
        *(("olcAttributeTypes", each) for each in types),
        ("olcObjectClasses", ours),
    ]
    return VERSION + record("cn=tocsin,cn=schema,cn=config", attributes)


def _record(entry: Entry, suffix: Suffix, form: Form) -> str:
    about = entry.registration
    # Named by the id: servers compare a cn without case and spaces, and OpenLDAP takes no level of
    # more than about 240 bytes.
    own = Part("uid", entry.id)
    classes = _STANDARD_CLASSES if form == "standard" else (*_STANDARD_CLASSES, _OUR_CLASS)
    attributes = [
        *(("objectClass", each) for each in classes),
        ("cn", about.name),
        ("uid", entry.id),
        ("associatedDomain", about.host),
        *([] if about.address is None else [("labeledURI", about.address)]),
        *(_described(entry) if form == "standard" else _in_our_words(entry)),
    ]
    return record(joined(own, Part("ou", f"{about.kind}s"), *suffix), attributes)


def _described(entry: Entry) -> Iterator[Attribute]:
    about = entry.registration
    lines = [f"event {offered.name}" for offered in about.events]
    lines += [f"parameter {each} of {on.name}" for on in about.events for each in on.parameters]
    lines += [f"attribute {name} = {_text(value)}" for name, value in about.attributes.items()]
    if entry.expires_ns is not None:
        lines.append(f"expires {rfc3339(entry.expires_ns)}")
    for line in _distinct(lines, ignore_case=True):
        yield "description", line


def _in_our_words(entry: Entry) -> Iterator[Attribute]:
    about = entry.registration
    values: dict[str, list[str]] = {
        "tocsinKind": [about.kind],
        "tocsinEvent": [str(offered.name) for offered in about.events],
        "tocsinParameter": [f"{on.name} {each}" for on in about.events for each in on.parameters],
        "tocsinAttribute": [f"{name}={_text(value)}" for name, value in about.attributes.items()],
        "tocsinExpires": [] if entry.expires_ns is None else [generalized_time(entry.expires_ns)],
    }
    for name, texts in values.items():
        for text in _distinct(texts, ignore_case=False):
            yield name, text


def generalized_time(moment_ns: int) -> str:
    """A moment as RFC 4517, 3.3.13 writes it, to the second."""
    return datetime.fromtimestamp(moment_ns // NS_PER_S, UTC).strftime("%Y%m%d%H%M%SZ")


def _text(value: Value) -> str:
    if isinstance(value, Quantity):
        parts = (canonical_text(value.value), value.unit, value.accuracy)
        return " ".join(part for part in parts if part)
    return canonical_text(value) or ""


def _distinct(texts: Iterable[str], *, ignore_case: bool) -> list[str]:
    """Those that differ for a server too, which refuses an entry with one value twice."""
    found: dict[str, str] = {}
    for text in texts:
        found.setdefault(_compared(text, ignore_case=ignore_case), text)
    return list(found.values())


def _compared(text: str, *, ignore_case: bool) -> str:
    """At least as coarse as the preparation of texts in RFC 4518."""
    if ignore_case:
        # The one letter whose small form is two characters, but a plain i to OpenLDAP.
        text = text.replace("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i")
    plain = unicodedata.normalize("NFKD", text)
    if ignore_case:
        plain = unicodedata.normalize("NFKD", plain.casefold())
    seen = (each for each in plain if unicodedata.category(each) != "Cf")
    words = "".join(each if each.isprintable() else " " for each in seen)
    return " ".join(words.split())


LINE_CHARS_MAX: Final = 76
VERSION: Final = "version: 1\n"

# What RFC 2849 calls a SAFE-STRING, less control characters, which a terminal would obey, and less
# a space at the end, which nobody would see.
_SAFE = re.compile(r"(?:[!-9;=-~](?:[ -~]*[!-~])?)?")

Attributes = Iterable[tuple[str, str]]


def record(name: str, attributes: Attributes) -> str:
    """An entry: its distinguished name, then an attribute a line; an empty line before it."""
    lines = [_line("dn", name), *(_line(*attribute) for attribute in attributes)]
    return "\n" + "".join(lines)


def _line(attribute: str, value: str) -> str:
    if _SAFE.fullmatch(value):
        return _folded(f"{attribute}: {value}")
    return _folded(f"{attribute}:: {b64encode(value.encode()).decode()}")


def _folded(line: str) -> str:
    """The line in pieces that begin with a space, but for the first."""
    if len(line) <= LINE_CHARS_MAX:
        return f"{line}\n"
    rest = line[LINE_CHARS_MAX:]
    step = LINE_CHARS_MAX - 1
    pieces = [rest[start : start + step] for start in range(0, len(rest), step)]
    return "\n ".join([line[:LINE_CHARS_MAX], *pieces]) + "\n"
