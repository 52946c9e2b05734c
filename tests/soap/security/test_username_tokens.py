"""A name and a token as its password, in the Security header of a message."""

from __future__ import annotations

import base64

import pytest
from lxml import etree

from soap.security.signers import (
    NOW_NS,
    S_NS,
    TOKENS,
    Site,
    find,
    plain,
    security,
    tree,
    with_token,
)
from tocsin.access.session import Credential, CredentialKind, Principal, Session
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import SOAP12, WSA2005, WSSE
from tocsin.wire.wss import names
from tocsin.wire.wss.write import timestamp, username_token

ALICE = TOKENS["alice"]
MINUTE_NS = 60 * S_NS


def token(name: bytes = b"alice", password: bytes = ALICE.encode(), more: bytes = b"") -> bytes:
    """The same, put together by hand."""
    return b'<o:UsernameToken xmlns:o="%b" xmlns:u="%b">%b%b%b</o:UsernameToken>' % (
        WSSE.encode(),
        names.WSU.encode(),
        b"<o:Username>%b</o:Username>" % name,
        b"<o:Password>%b</o:Password>" % password,
        more,
    )


def nonce(value: bytes, created: bytes = b"") -> bytes:
    made = b"<u:Created>%b</u:Created>" % created if created else b""
    return b"<o:Nonce>%b</o:Nonce>%b" % (base64.b64encode(value), made)


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_a_name_with_a_token_of_his_signs_somebody_in(soap: str) -> None:
    session = Site().session(with_token("alice", ALICE, soap))

    assert session.principal.name == "alice"
    assert session.credential is not None
    assert session.credential.key == f"token/{'a' * 24}"
    assert session.peer == "10.0.0.9:1"


def test_without_a_security_header_the_connection_says_who_it_is() -> None:
    assert not Site().session(plain()).is_signed_in


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_a_wrong_password_a_foreign_token_and_an_unknown_name_are_the_same_to_who_asks(
    soap: str,
) -> None:
    site = Site()
    for name, password in (
        ("alice", "wrong"),
        ("alice", TOKENS["bob"]),
        ("alice", ALICE[:-1] + "b"),
        ("mallory", ALICE),
        ("anonymous", ALICE),
    ):
        assert site.fault(with_token(name, password, soap)) == "FailedAuthentication"


def test_without_tls_a_password_is_refused_whether_it_is_right_or_not() -> None:
    for password in (ALICE, "wrong"):
        message = with_token("alice", password)
        assert Site().fault(message, is_private=False) == "InvalidSecurity"

    message = with_token("alice", ALICE)
    assert Site(tls_in_front=True).principal(message, is_private=False) == "alice"


def test_a_digest_is_refused_and_it_is_said_why() -> None:
    message = tree(with_token("alice", ALICE))
    find(message, "Header", "Security", "UsernameToken", "Password").set(
        "Type", names.PASSWORD_DIGEST
    )
    assert Site().fault(etree.tostring(message)) == "UnsupportedSecurityToken"


def test_what_stands_in_a_name_is_the_whole_name() -> None:
    """A parser that stops at a comment, or at an element, reads another name than was sent."""
    site = Site()
    assert site.principal(security([token(b"ali<!-- x -->ce")])) == "alice"
    for name in (b"alice<!-- x -->.evil", b"ali&#99;e.evil", b"alice&#13;x"):
        assert site.fault(security([token(name)])) == "FailedAuthentication"
    for name in (b"alice<x/>.evil", b"<x>alice</x>", b"", b" ", b"a" * 300):
        assert site.fault(security([token(name)])) == "InvalidSecurityToken"
    for password in (ALICE.encode() + b"<x/>", b"", b"x" * 20_000):
        assert site.fault(security([token(b"alice", password)])) == "InvalidSecurityToken"


def test_a_nonce_is_taken_once() -> None:
    site = Site()
    first = security([token(more=nonce(b"16 bytes of noise", b"2026-06-01T12:00:00Z"))])
    second = security([token(more=nonce(b"16 bytes of other", b"2026-06-01T12:00:00Z"))])

    assert site.principal(first) == "alice"
    assert site.fault(first) == "InvalidSecurity"
    assert site.principal(second) == "alice"


def test_a_nonce_without_a_time_is_known_for_some_minutes() -> None:
    site = Site()
    message = security([token(more=nonce(b"16 bytes of noise"))])
    assert site.principal(message) == "alice"
    site.clock.ns += 4 * MINUTE_NS
    assert site.fault(message) == "InvalidSecurity"


def test_a_nonce_with_a_wrong_password_does_not_use_it_up() -> None:
    site = Site()
    made = nonce(b"16 bytes of noise", b"2026-06-01T12:00:00Z")
    wrong = security([token(password=b"wrong", more=made)])

    assert site.fault(wrong) == "FailedAuthentication"
    assert site.principal(security([token(more=made)])) == "alice"


@pytest.mark.parametrize(
    ("at", "fault"),
    [
        (b"2026-06-01T11:50:00Z", "MessageExpired"),
        (b"2026-06-01T12:05:00Z", "MessageExpired"),
        (b"yesterday", "InvalidSecurity"),
    ],
)
def test_an_old_a_future_and_no_time_are_refused(at: bytes, fault: str) -> None:
    assert Site().fault(security([token(more=nonce(b"noise", at))])) == fault
    stamp = b'<u:Timestamp xmlns:u="%b"><u:Created>%b</u:Created></u:Timestamp>'
    assert Site().fault(security([token(), stamp % (names.WSU.encode(), at)])) == fault


def test_clocks_may_be_a_minute_apart() -> None:
    for minutes in (-5, 0, 1):
        stamp = timestamp(NOW_NS + minutes * MINUTE_NS)
        assert Site().principal(with_token("alice", ALICE, "1.2", stamp)) == "alice"


def test_its_own_end_counts_if_it_is_earlier() -> None:
    stamp = timestamp(NOW_NS - 2 * MINUTE_NS, lifetime_ns=30 * S_NS)
    assert Site().fault(with_token("alice", ALICE, "1.2", stamp)) == "MessageExpired"


def test_where_too_many_came_a_nonce_that_cannot_be_remembered_is_refused() -> None:
    site = Site(seen_max=2)
    made = [security([token(more=nonce(b"%d" % number))]) for number in range(3)]
    assert [site.principal(each) for each in made[:2]] == ["alice", "alice"]

    with pytest.raises(Exception, match="T219"):
        site.session(made[2])

    site.clock.ns += 20 * MINUTE_NS
    assert site.principal(made[2]) == "alice"


def test_two_credentials_have_to_be_of_one() -> None:
    def connection(name: str) -> Session:
        credential = Credential(CredentialKind.CERTIFICATE, f"certificate/{name}")
        return Session(Principal(name), "soap", "10.0.0.9:1", credential)

    message = with_token("alice", ALICE)
    same = Site().session(message, session=connection("alice"))
    assert same.credential is not None
    assert same.credential.kind is CredentialKind.TOKEN
    assert Site().fault(message, session=connection("bob")) == "FailedAuthentication"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ([b"<other/>"], "UnsupportedSecurityToken"),
        ([token(), token()], "InvalidSecurity"),
        ([timestamp(NOW_NS), timestamp(NOW_NS)], "InvalidSecurity"),
        ([token(more=b"<other/>")], "InvalidSecurityToken"),
        ([token(more=b"<o:Username>bob</o:Username>")], "InvalidSecurityToken"),
        ([token(more=b"<o:Nonce>***</o:Nonce>")], "InvalidSecurityToken"),
        ([token(more=b"<o:Nonce/>")], "InvalidSecurityToken"),
        ([token(more=b"<o:Nonce>%b</o:Nonce>" % (b"QUJD" * 200))], "InvalidSecurityToken"),
        ([token(more=b'<o:Nonce EncodingType="hex">AA</o:Nonce>')], "UnsupportedSecurityToken"),
    ],
)
def test_what_is_not_known_or_comes_twice_is_refused(content: list[bytes], fault: str) -> None:
    assert Site().fault(security(content)) == fault


def test_a_header_for_somebody_else_is_not_ours_to_read() -> None:
    other = tree(with_token("mallory", "wrong"))
    header = find(other, "Header", "Security")
    header.set(f"{{{SOAP12}}}role", "http://elsewhere.example/gateway")
    assert not Site().session(etree.tostring(other)).is_signed_in

    ours = tree(with_token("alice", ALICE))
    find(ours, "Header").insert(0, header)
    assert Site().principal(etree.tostring(ours)) == "alice"


def test_two_headers_for_us_are_refused() -> None:
    message = tree(with_token("alice", ALICE))
    second = tree(with_token("alice", ALICE))
    find(message, "Header").append(find(second, "Header", "Security"))
    assert Site().fault(etree.tostring(message)) == "InvalidSecurity"
    find(message, "Header", "Security").set(f"{{{SOAP12}}}role", f"{SOAP12}/role/next")
    assert Site().fault(etree.tostring(message)) == "InvalidSecurity"


def test_what_was_given_out_in_a_reference_and_is_echoed_signs_nobody_in() -> None:
    message = tree(with_token("alice", ALICE))
    find(message, "Header", "Security").set(f"{{{WSA2005}}}IsReferenceParameter", "true")
    assert not Site().session(etree.tostring(message)).is_signed_in


def test_a_password_is_in_no_fault_and_in_no_log() -> None:
    site = Site()
    with pytest.raises(SoapFault) as raised:
        site.session(with_token("alice", ALICE[:-1] + "c"))

    [line] = site.clock.said
    assert "FailedAuthentication" in line
    assert "10.0.0.9:1" in line
    assert ALICE[:-1] not in line
    assert ALICE[:-1] not in str(raised.value)
    assert ALICE[:-1].encode() not in raised.value.detail


def test_escapes_in_what_we_write_are_read_again() -> None:
    assert Site().fault(security([username_token("a<b>&\"'", "x")])) == "FailedAuthentication"
