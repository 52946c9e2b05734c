"""Hostile requests to subscribe at a running broker: refused with a fault in the caller's own
versions, quickly, and nothing is half subscribed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hostile_connection import EVERY, Dialect, SoapConnection, count, subscribe
from wse_source import Consumer, consumer

from served import Served, served
from tocsin.wire.soap import names
from tocsin.wire.soap.addressing import write_headers
from tocsin.wire.soap.envelope import http_headers, write_envelope


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def connection(broker: Served) -> Iterator[SoapConnection]:
    opened = SoapConnection(broker)
    yield opened
    opened.close()


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


MANAGING = {
    "wse04": [("Renew", ""), ("GetStatus", ""), ("Unsubscribe", "")],
    "wse11": [("Renew", ""), ("GetStatus", ""), ("Unsubscribe", "")],
    "wsn13": [
        ("Renew", "<m:TerminationTime>PT1H</m:TerminationTime>"),
        ("Unsubscribe", ""),
        ("PauseSubscription", ""),
        ("ResumeSubscription", ""),
        ("GetMessages", ""),
        ("DestroyPullPoint", ""),
    ],
    "wsn12": [("PauseSubscription", ""), ("ResumeSubscription", "")],
    "wsn10": [
        ("UnsubsribeRequest", ""),
        ("PauseSubsriptionRequest", ""),
        ("ResumeSubsriptionRequest", ""),
    ],
}
UNKNOWN_IS = {
    "wse04": b"InvalidMessage",
    "wse11": b"UnknownSubscription",
    "wsn13": b"ResourceUnknownFault",
    "wsn12": b"ResourceUnknownFault",
    "wsn10": b"ResourceUnknownFault",
}
UNKNOWN = ("none", "%00", "..%2f..%2fetc", "x" * 5_000, "\u2603".encode().hex(), "'%20or%201=1")


@EVERY
def test_unknown_subscriptions_have_their_fault_in_every_specification(
    connection: SoapConnection, dialect: Dialect
) -> None:
    for operation, inside in MANAGING[dialect.spec]:
        kind = "boxes" if "Pull" in operation or "Messages" in operation else "subscriptions"
        for resource in UNKNOWN:
            body = f'<m:{operation} xmlns:m="{dialect.ns}">{inside}</m:{operation}>'

            answer = connection.send(dialect, body, path=f"/soap/{kind}/{resource}")

            assert answer.is_fault, (operation, resource)
            is_named = UNKNOWN_IS[dialect.spec]
            if (dialect.spec, operation) == ("wse04", "Renew"):
                is_named = b"UnableToRenew"
            assert is_named in answer.body, (operation, resource, answer.body)
    if dialect.spec == "wsn12":
        for operation in ("Destroy", "SetTerminationTime"):
            inside = "<m:RequestedTerminationTime>2099-01-01T00:00:00Z</m:RequestedTerminationTime>"
            inside = inside if operation == "SetTerminationTime" else ""
            body = f'<m:{operation} xmlns:m="{names.LIFETIME12}">{inside}</m:{operation}>'
            answer = connection.send(dialect, body, path="/soap/subscriptions/none")
            assert b"ResourceUnknownFault" in answer.body
    assert connection.is_usable()


BURNING = [
    "//*" * 60,
    "//*[//*[//*[//*[//*[//*]]]]]",
    "count(" * 200 + "//*" + ")" * 200,
    "(" * 20_000 + "1" + ")" * 20_000,
    "//*[contains(., '" + "a" * 100_000 + "')]",
    "sum(//*/preceding::*/following::*/preceding::*/following::*) > 1",
    "//*[count(//*[count(//*[count(//*) > 1]) > 1]) > 1]",
]


@pytest.mark.parametrize("number", range(len(BURNING)))
@EVERY
def test_an_expression_that_would_burn_is_refused_or_is_cheap(
    connection: SoapConnection, sink: Consumer, dialect: Dialect, number: int
) -> None:
    if dialect.spec == "wsn12":
        pytest.skip("its Selector is the same reader's as that of wsn10")
    before = count(connection.broker)
    tag = {"wsn13": "MessageContent", "wsn10": "Selector"}.get(dialect.spec, "Filter")
    xpath = names.XPATH10_WSE11 if dialect.spec == "wse11" else names.XPATH10
    text = BURNING[number].replace("<", "&lt;").replace(">", "&gt;")
    content = f'<e:{tag} Dialect="{xpath}">{text}</e:{tag}>'
    more = f"<e:Filter>{content}</e:Filter>" if dialect.spec == "wsn13" else content

    answer = connection.send(dialect, subscribe(dialect, sink.url, more=more))

    if answer.is_fault:
        assert count(connection.broker) == before
    else:
        # What was let in must not hold up the publisher of a document with many elements.
        wide = write_envelope("1.2", body=b"<w>%b</w>" % (b"<a><b/></a>" * 2_000))
        assert connection.post(wide).status == 202
        for shown in connection.broker.call("GET", "/subscriptions")[1]["subscriptions"]:
            connection.broker.call("DELETE", f"/subscriptions/{shown['id']}")
    assert connection.is_usable()


ABSURD = [
    "PT0S", "-PT1S", "-P1D", "P", "PT", "P1S", "1", "-1", "0", "1e400", "NaN", "INF", "soon", " ",
    "PT1H; drop", "9" * 5_000, "P" + "9" * 400 + "Y", "PT" + "9" * 400 + "S",
    "PT0." + "0" * 400 + "1S", "2001-01-01T00:00:00Z", "0000-00-00T00:00:00Z",
    "2026-13-45T99:99:99Z", "99999-01-01T00:00:00Z", "-2026-01-01T00:00:00Z", "2026-11-16",
    "2099-01-01T00:00:00+99:99", "PT\u0661H", "P1Y2M3DT4H5M6.7S" * 50,
]  # fmt: skip


@EVERY
def test_absurd_expirations_are_refused_or_bounded(
    connection: SoapConnection, sink: Consumer, dialect: Dialect
) -> None:
    for text in ABSURD:
        before = count(connection.broker)

        answer = connection.send(dialect, subscribe(dialect, sink.url, expires=text))

        if answer.is_fault:
            assert count(connection.broker) == before, text
            continue
        for made in connection.broker.call("GET", "/subscriptions")[1]["subscriptions"]:
            assert made["expires"] is None or made["expires"] > "2026", text
            connection.broker.call("DELETE", f"/subscriptions/{made['id']}")
    assert connection.is_usable()


PRIVATE = [
    "http://127.0.0.1:80/", "http://127.1/", "http://2130706433/", "http://0x7f.1/",
    "http://localhost/", "http://x.localhost./", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://10.0.0.1/",
    "http://192.168.1.1/", "http://172.16.0.9:8080/", "http://169.254.169.254/latest",
    "http://[fe80::1]/", "http://[fd00::1]/", "http://0.0.0.0/", "http://[::]/",
    "http://224.0.0.1/", "http://255.255.255.255/", "soap.tcp://127.0.0.1:9998/", "file:///etc/x",
    "gopher://127.0.0.1/", "ftp://10.0.0.1/", "http:///", "http://", "//127.0.0.1/", "urn:x",
    "http://user:word@127.0.0.1/", "http://127.0.0.1:99999/", "http://a b/", "http://x\u2603.y/",
]  # fmt: skip


@pytest.fixture(scope="module")
def careful() -> Iterator[Served]:
    with served(env={"TOCSIN_DELIVERY__PRIVATE": "no"}) as running:
        yield running


@EVERY
def test_nothing_near_may_be_named_where_private_addresses_are_not_allowed(
    careful: Served, dialect: Dialect
) -> None:
    connection = SoapConnection(careful)
    for address in PRIVATE:
        answer = connection.send(dialect, subscribe(dialect, address))
        assert answer.is_fault, address
        if dialect.spec in ("wse04", "wse11"):
            public = "http://127.0.0.1:9/"
            assert connection.send(dialect, subscribe(dialect, public, end=address)).is_fault, (
                address
            )
    assert count(careful) == 0
    assert connection.is_usable()
    connection.close()


@EVERY
def test_an_answer_is_not_sent_where_it_may_not_go(careful: Served, dialect: Dialect) -> None:
    connection = SoapConnection(careful)
    for address in PRIVATE:
        header = f'<a:ReplyTo xmlns:a="{dialect.wsa}"><a:Address>{address}</a:Address></a:ReplyTo>'
        body = subscribe(dialect, "http://198.51.100.7/")

        answer = connection.send(dialect, body, header=header)

        assert answer.is_fault, address
    assert count(careful) == 0
    assert connection.is_usable()
    connection.close()


@EVERY
def test_an_answer_does_not_go_to_the_broker_itself(
    connection: SoapConnection, sink: Consumer, dialect: Dialect
) -> None:
    url = f"{connection.broker.url}/soap"
    header = f'<a:ReplyTo xmlns:a="{dialect.wsa}"><a:Address>{url}</a:Address></a:ReplyTo>'

    answer = connection.send(dialect, subscribe(dialect, sink.url), header=header)

    assert answer.is_fault
    assert count(connection.broker) == 0
    assert connection.is_usable()


@EVERY
def test_a_reply_address_without_a_message_id_is_a_trap_and_is_not_used(
    connection: SoapConnection, sink: Consumer, dialect: Dialect
) -> None:
    """A client of cameras puts its webhook there, and waits for the answer on the connection."""
    address = f'<a:Address xmlns:a="{dialect.wsa}">{sink.url}</a:Address>'
    header = f'<a:ReplyTo xmlns:a="{dialect.wsa}">{address}</a:ReplyTo>'.encode()
    body = subscribe(dialect, sink.url).encode()

    answer = connection.post(
        write_envelope(dialect.soap, header=header, body=body),
        headers=dict(http_headers(dialect.soap, "")),
    )

    assert (answer.status, answer.is_fault, answer.envelope.soap) == (200, False, dialect.soap)
    assert sink.is_silent(0.2)
    for shown in connection.broker.call("GET", "/subscriptions")[1]["subscriptions"]:
        connection.broker.call("DELETE", f"/subscriptions/{shown['id']}")


@EVERY
def test_addressing_headers_that_contradict_themselves_are_refused(
    connection: SoapConnection, sink: Consumer, dialect: Dialect
) -> None:
    before = count(connection.broker)
    twice = f'<a:Action xmlns:a="{dialect.wsa}">other</a:Action>'
    empty = f'<a:ReplyTo xmlns:a="{dialect.wsa}"/>'
    nested = f'<a:FaultTo xmlns:a="{dialect.wsa}"><a:Address><x/></a:Address></a:FaultTo>'
    for header in (twice, empty):
        blocks = write_headers(dialect.wsa, action="x:y", message_id="urn:uuid:hostile")
        whole = write_envelope(
            dialect.soap,
            header=blocks + header.encode(),
            body=subscribe(dialect, sink.url).encode(),
        )
        answer = connection.post(whole, headers=dict(http_headers(dialect.soap, "")))
        assert answer.is_fault, header
        assert answer.envelope.soap == dialect.soap
    connection.send(dialect, "<x/>", header=nested)
    assert count(connection.broker) == before
    assert connection.is_usable()
