"""Messages that are signed by the key of a certificate: what is taken, and what is not."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from lxml import etree

from soap.security.rewriting import sign_again
from soap.security.signers import (
    BODY,
    NOW_NS,
    PUBLISH,
    S_NS,
    TO,
    TOKENS,
    Site,
    find,
    issued,
    plain,
    signed,
    stranger,
    tree,
)
from tocsin.wire.soap.addressing import write_headers
from tocsin.wire.soap.names import WSA2005
from tocsin.wire.wss import names
from tocsin.wire.wss.write import timestamp, username_token, with_security

MINUTE_NS = 60 * S_NS
Change = Callable[[etree._Element], None]


def changed(change: Change, message: bytes | None = None) -> bytes:
    """A message that was genuine before the change."""
    root = tree(signed() if message is None else message)
    change(root)
    return etree.tostring(root)


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
@pytest.mark.parametrize("kind", ["rsa", "ec"])
def test_who_has_signed_is_signed_in_by_the_certificate(soap: str, kind: str) -> None:
    session = Site().session(signed(issued("alice", kind), plain(soap)))

    assert session.principal.name == "alice"
    assert session.credential is not None
    assert session.credential.key == "certificate/alice"


def test_a_certificate_of_somebody_else_s_authority_signs_nobody_in() -> None:
    assert Site().fault(signed(issued("alice", "rsa", stranger()))) == "FailedAuthentication"


def test_a_certificate_with_somebody_else_s_key_signs_nobody_in() -> None:
    def exchange(root: etree._Element) -> None:
        other = tree(signed(issued("bob")))
        token = find(root, "Header", "Security", "BinarySecurityToken")
        token.text = find(other, "Header", "Security", "BinarySecurityToken").text

    assert Site().fault(changed(exchange)) == "FailedCheck"


def test_each_change_of_what_was_signed_is_seen() -> None:
    def body(root: etree._Element) -> None:
        find(root, "Body", "state").text = "two"

    def later(root: etree._Element) -> None:
        find(root, "Header", "Security", "Timestamp", "Expires").text = "2026-06-01T12:09:00Z"

    def action(root: etree._Element) -> None:
        find(root, "Header", "Action").text = "urn:example/other"

    def added(root: etree._Element) -> None:
        etree.SubElement(find(root, "Body"), "more")

    def value(root: etree._Element) -> None:
        found = find(root, "Header", "Security", "Signature", "SignatureValue")
        found.text = base64.b64encode(bytes(256)).decode()

    for change in (body, later, action, added, value):
        assert Site().fault(changed(change)) == "FailedCheck"


def test_what_no_reader_sees_may_change() -> None:
    def again(root: etree._Element) -> None:
        body = find(root, "Body")
        body.insert(0, etree.Comment("no reader sees this"))
        find(root, "Body", "state").append(etree.ProcessingInstruction("x"))

    assert Site().principal(changed(again)) == "alice"


def test_the_same_message_is_taken_once() -> None:
    site = Site()
    first, second = signed(), signed()

    assert site.principal(first) == "alice"
    assert site.fault(first) == "InvalidSecurity"
    assert site.principal(second) == "alice"
    # In another form, of which the signature is as good.
    assert site.fault(etree.tostring(tree(first), encoding="utf-16")) == "InvalidSecurity"


def test_another_signature_value_for_the_same_is_the_same_message() -> None:
    """Of each signature by ECDSA, whoever sees it can make a second one."""
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    site = Site()
    message = signed(issued("alice", "ec"))
    assert site.principal(message) == "alice"

    def flip(root: etree._Element) -> None:
        value = find(root, "Header", "Security", "Signature", "SignatureValue")
        both = base64.b64decode(value.text or "")
        s = order - int.from_bytes(both[32:], "big")
        value.text = base64.b64encode(both[:32] + s.to_bytes(32, "big")).decode()

    assert Site().principal(changed(flip, message)) == "alice"
    assert site.fault(changed(flip, message)) == "InvalidSecurity"


@pytest.mark.parametrize("minutes", [-7, 2, 60, -60])
def test_old_and_future_messages_are_refused(minutes: int) -> None:
    assert Site().fault(signed(at_ns=NOW_NS + minutes * MINUTE_NS)) == "MessageExpired"


def test_a_message_of_before_the_start_is_refused_since_it_may_have_come_then() -> None:
    site = Site(started_ns=NOW_NS - 30 * S_NS)
    assert site.fault(signed(at_ns=NOW_NS - 40 * S_NS)) == "MessageExpired"
    assert site.principal(signed(at_ns=NOW_NS - 20 * S_NS)) == "alice"


def test_a_message_is_remembered_for_as_long_as_it_is_taken() -> None:
    site = Site()
    message = signed()
    assert site.principal(message) == "alice"
    for _ in range(5):
        site.clock.ns += MINUTE_NS
        assert site.fault(message) == "InvalidSecurity"
    site.clock.ns += MINUTE_NS
    assert site.fault(message) == "MessageExpired"


def test_a_signature_and_a_name_have_to_be_of_one() -> None:
    def with_name(name: str) -> bytes:
        token = username_token(name, TOKENS[name])

        def add(root: etree._Element) -> None:
            find(root, "Header", "Security").append(tree(token))

        return changed(add)

    session = Site().session(with_name("alice"))
    assert session.credential is not None
    assert session.credential.key == "certificate/alice"
    assert Site().fault(with_name("bob")) == "FailedAuthentication"


def test_a_certificate_alone_is_no_sign_in() -> None:
    def cut(root: etree._Element) -> None:
        header = find(root, "Header", "Security")
        header.remove(find(header, "Signature"))

    assert Site().fault(changed(cut)) == "InvalidSecurity"


# Without TLS: what is around the body gives it its meaning


def test_without_tls_everything_around_the_body_has_to_be_signed() -> None:
    assert Site().principal(signed(), is_private=False) == "alice"

    def added(root: etree._Element) -> None:
        reply = etree.SubElement(find(root, "Header"), f"{{{WSA2005}}}ReplyTo")
        etree.SubElement(reply, f"{{{WSA2005}}}Address").text = "http://mallory.example/"

    assert Site().fault(changed(added), is_private=False) == "FailedCheck"
    assert Site().principal(changed(added)) == "alice"


def test_without_tls_a_message_is_for_the_place_that_it_names() -> None:
    for path, query in (("/soap/subscriptions/2", ""), ("/soap", "a=b")):
        assert Site().fault(signed(), is_private=False, path=path, query=query) == "FailedCheck"
    for header in (b"", write_headers(WSA2005, action=PUBLISH), write_headers(WSA2005, action=TO)):
        message = signed(message=plain(header=header))
        assert Site().fault(message, is_private=False) == "FailedCheck"


def test_without_tls_the_prefixes_of_texts_have_to_be_signed() -> None:
    """In the exclusive form a prefix that stands in a text alone is not there: somebody could have
    it stand for another namespace."""
    message = signed(
        message=plain(body=b"<topic>t:a/b</topic>").replace(
            b"<s:Envelope ", b'<s:Envelope xmlns:t="urn:mine" ', 1
        )
    )
    assert Site().principal(message, is_private=False) == "alice"

    forged = message.replace(b"urn:mine", b"urn:mallory")
    assert Site().fault(forged, is_private=False) == "FailedCheck"

    bare = without_prefixes(message)
    assert b"PrefixList" not in bare
    assert Site().principal(bare) == "alice"
    assert Site().fault(bare, is_private=False) == "FailedCheck"


def without_prefixes(message: bytes) -> bytes:
    """The same message, signed as many do: in the exclusive form, and no more."""
    root = tree(message)
    for each in list(root.iter(f"{{{names.EXCLUSIVE}}}InclusiveNamespaces")):
        parent = each.getparent()
        assert parent is not None
        parent.remove(each)
    return etree.tostring(sign_again(root, issued("alice")))


def test_a_broker_without_authorities_takes_no_signature() -> None:
    site = Site()
    site.sign_in._signatures = None
    assert site.fault(signed()) == "UnsupportedSecurityToken"


def test_a_timestamp_alone_in_the_header_signs_nobody_in() -> None:
    message = etree.tostring(with_security(plain(), [timestamp(NOW_NS)]))
    assert not Site().session(message).is_signed_in


def test_what_is_signed_can_be_long() -> None:
    body = b"<a>%b</a>" % (BODY * 20_000)
    assert Site().principal(signed(message=plain(body=body))) == "alice"
    body = b"<a>%b</a>" % (BODY * 100_000)
    assert Site().fault(signed(message=plain(body=body))) == "InvalidSecurity"
