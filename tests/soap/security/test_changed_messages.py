"""Signed messages changed at random: what is still taken says what its sender has said."""

from __future__ import annotations

import copy
from random import Random

import pytest
from lxml import etree

from soap.security.signers import TOKENS, Site, issued, plain, signed, tree, with_token
from tocsin.errors import TocsinError
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.wss.values import canonical

CHANGES = 250
Element = etree._Element
TEXTS = (
    *("", "x", "AAAA", "é中", "9" * 500, "-1", "#", "#x", "#a|b"),
    *("2026-06-01T12:00:00Z", "99999-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00"),
)


def change(root: Element, chance: Random) -> None:
    found = list(root.iter())
    element, other = chance.choice(found), chance.choice(found)
    parent = element.getparent()
    match chance.randrange(7):
        case 0 if parent is not None:
            parent.remove(element)
        case 1 if parent is not None:
            element.addnext(copy.deepcopy(other))
        case 2:
            element.append(copy.deepcopy(other))
        case 3:
            element.text = chance.choice(TEXTS)
        case 4:
            element.tag = other.tag
        case 5 if element.attrib:
            element.set(chance.choice(list(element.attrib)), chance.choice(TEXTS))
        case 6 if element.attrib:
            del element.attrib[chance.choice(list(element.attrib))]


def parts(root: Element) -> list[bytes]:
    """What has to be signed, if it is there."""
    found = [root.find(path) for path in ("{*}Body", "{*}Header/{*}Security/{*}Timestamp")]
    return [b"" if part is None else canonical(part) for part in found]


@pytest.mark.parametrize("seed", range(4))
def test_a_message_that_was_changed_is_refused_or_says_the_same(seed: int) -> None:
    chance = Random(seed)
    messages = [signed(), signed(issued("alice", "ec")), signed(message=plain("1.1"))]
    taken = 0
    for _ in range(CHANGES):
        genuine = chance.choice(messages)
        root = tree(genuine)
        for _ in range(chance.randint(1, 3)):
            change(root, chance)
        try:
            session = Site().session(etree.tostring(root))
        except (SoapFault, TocsinError):
            continue
        if session.is_signed_in:
            taken += 1
            assert session.principal.name == "alice"
            assert parts(root) == parts(tree(genuine))

    assert taken, "some changes do no harm"


def test_a_name_that_was_changed_is_refused_or_is_the_same() -> None:
    chance = Random(5)
    for _ in range(CHANGES):
        root = tree(with_token("alice", TOKENS["alice"]))
        change(root, chance)
        try:
            session = Site().session(etree.tostring(root))
        except (SoapFault, TocsinError):
            continue
        assert session.principal.name in ("alice", "anonymous")
