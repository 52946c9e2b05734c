"""Which addresses are sinks, and which networks no event is sent to."""

from __future__ import annotations

import re
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.broker.delivery.address import PORTS, PORTS_REFUSED, SinkAddress
from tocsin.broker.delivery.sinks import Sinks, url_sink
from tocsin.broker.delivery.trust import check_trusted, is_trusted, why_refused
from tocsin.errors import BadSetting, BadSubscription, SinkRefused, TocsinError

SINKS = Sinks(PORTS, url_sink)
Parts = tuple[str, int, bool, str]


def parts(address: SinkAddress) -> Parts:
    return (address.host, address.port, address.tls, address.target)


SPELLINGS = (
    Path(__file__).parents[2]
    / "../shared/data/hostile/payloadsallthethings/Server Side Request Forgery/README.md"
)


@pytest.mark.parametrize(
    ("url", "sink", "authority"),
    [
        ("http://example.org", ("example.org", 80, False, "/"), "example.org"),
        ("HTTPS://Example.ORG/a", ("example.org", 443, True, "/a"), "example.org"),
        ("http://h:8080/a?b=c#d", ("h", 8080, False, "/a?b=c"), "h:8080"),
        ("https://h:443/", ("h", 443, True, "/"), "h"),
        ("http://h?q=1", ("h", 80, False, "/?q=1"), "h"),
        ("http://[2001:DB8::1]:81/x", ("2001:db8::1", 81, False, "/x"), "[2001:db8::1]:81"),
        ("http://h/%7Ea/ä", ("h", 80, False, "/%7Ea/%C3%A4"), "h"),
        ("http://bücher.example/", ("xn--bcher-kva.example", 80, False, "/"), None),
        ("http://①②⑦.⓪.⓪.①/", ("127.0.0.1", 80, False, "/"), "127.0.0.1"),
        ("http://my_sink.lan./", ("my_sink.lan.", 80, False, "/"), "my_sink.lan."),
        ('http://h/a"<b>\\', ("h", 80, False, "/a%22%3Cb%3E%5C"), "h"),
    ],
)
def test_an_address_is_taken_apart(url: str, sink: Parts, authority: str | None) -> None:
    parsed = SINKS.parse(url)

    assert parts(parsed) == sink
    assert authority is None or parsed.authority() == authority


@pytest.mark.parametrize(
    ("url", "sink", "authority"),
    [
        ("soap.tcp://h/a", ("h", 8081, False, "/a"), "h"),
        ("SOAP.TCP://[::1]:9", ("::1", 9, False, "/"), "[::1]:9"),
        ("https://h/", ("h", 443, True, "/"), "h"),
    ],
)
def test_where_soap_is_sent_it_may_go_without_http(url: str, sink: Parts, authority: str) -> None:
    parsed = SINKS.parse(url, soap=True)

    assert parts(parsed) == sink
    assert parsed.authority() == authority


def test_a_soap_tcp_address_is_no_sink_of_a_webhook() -> None:
    with pytest.raises(BadSubscription, match="takes no events of the HTTP API"):
        SINKS.parse("soap.tcp://example.org/")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org/hook",
        "ftp://example.org/",
        "gopher://127.0.0.1:6379/_x",
        "file:///etc/passwd",
        "http:///path",
        "http://:80/",
        "http://user@example.org/",
        "http://user:pass@example.org/",
        "http://good.example\\@evil.example/",
        "http://h:0/",
        "http://h:65536/",
        "http://h:80a/",
        "http://::1/",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "http://[1:2:3]/",
        "http://a..b/",
        "http://%31%32%37.0.0.1/",
        "http://h/a b",
        "http://h/a\r\nx-injected: 1",
        "http://h/\x00",
        "http://h/\u2028",
        "http://" + "a" * 64 + ".example/",
        "http://" + "a." * 130 + "example/",
        "http://h/" + "a" * 2048,
    ],
)
def test_what_is_no_web_address_is_no_sink(url: str) -> None:
    with pytest.raises(BadSubscription) as caught:
        SINKS.parse(url)

    assert caught.value.remedy


def test_the_error_for_an_unknown_scheme_names_those_that_are_known() -> None:
    with pytest.raises(BadSubscription, match="no sink has the scheme 'ftp'") as caught:
        SINKS.parse("ftp://example.org/")

    assert "gma, gmas, http, https, soap.tcp" in caught.value.remedy


@pytest.mark.parametrize("port", [22, 25, 6379, 11211])
def test_the_port_of_another_protocol_is_refused(port: int) -> None:
    with pytest.raises(SinkRefused, match=str(port)):
        SINKS.parse(f"http://example.org:{port}/")


def test_ports_of_web_servers_and_of_examples_are_not_refused() -> None:
    assert not PORTS_REFUSED & {9, 80, 81, 443, 3000, 5000, 8000, 8080, 8400, 8443, 9000, 9090}


@given(st.text(max_size=80).map(lambda text: f"http://{text}") | st.text(max_size=80))
def test_any_text_is_a_sink_that_is_safe_to_write_or_a_clear_error(text: str) -> None:
    try:
        sink = SINKS.parse(text)
    except TocsinError:
        return

    line = f"POST {sink.target} HTTP/1.1\r\nhost: {sink.authority()}\r\n"
    assert re.fullmatch(r"POST /[!-~]* HTTP/1.1\r\nhost: [a-z0-9._:\[\]-]+\r\n", line)


REFUSED_UNLESS_NEARBY_IS_ALLOWED = [
    *("127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("100.64.0.1", "100.127.255.255", "169.254.1.1", "::1", "fc00::1", "fd12:3456::1"),
    *("fe80::1", "febf::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
]
REFUSED_ALWAYS = [
    *("0.0.0.0", "0.1.2.3", "169.254.169.254", "168.63.129.16", "100.100.100.200"),
    *("192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1"),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("::", "::127.0.0.1", "::8.8.8.8", "::ffff:8.8.8.8", "::ffff:169.254.169.254"),
    *("64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1"),
    *("2002:7f00:1::", "2002:a9fe:a9fe::", "3fff::1", "5f00::1", "fec0::1", "ff02::1", "ff0e::1"),
    *("4000::1", "fd00:ec2::254"),
]
FINE = ["1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.32.0.1", "223.255.255.255"]
FINE_IPV6 = ["2606:4700:4700::1111", "2a00:1450:4001::1", "2400:cb00::1"]


@pytest.mark.parametrize("text", REFUSED_UNLESS_NEARBY_IS_ALLOWED)
def test_what_is_near_is_refused_unless_allowed(text: str) -> None:
    assert why_refused(ip_address(text), allow_private=False)
    if not text.startswith("::ffff"):
        assert why_refused(ip_address(text), allow_private=True) is None


@pytest.mark.parametrize("text", REFUSED_ALWAYS)
def test_no_sink_is_where_no_sink_can_be(text: str) -> None:
    assert why_refused(ip_address(text), allow_private=False)
    assert why_refused(ip_address(text), allow_private=True)


@pytest.mark.parametrize("text", FINE + FINE_IPV6)
def test_the_rest_of_the_internet_is_fine(text: str) -> None:
    assert why_refused(ip_address(text), allow_private=False) is None


@given(st.ip_addresses())
def test_what_the_registries_call_private_is_never_let_through(address) -> None:  # type: ignore[no-untyped-def]
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert why_refused(address, allow_private=False)


@pytest.mark.parametrize(
    ("host", "trusted"),
    [
        ("127.0.0.1", ()),
        ("127.8.8.8", ()),
        ("::1", ()),
        ("localhost", ()),
        ("LOCALHOST.", ()),
        ("sink.lab.example", ("sink.lab.example",)),
        ("a.b.lab.example", ("*.lab.example",)),
        ("10.1.2.3", ("10.0.0.0/8",)),
        ("10.1.2.3", ("10.1.2.3",)),
        ("fd00::5", ("fd00::/16",)),
    ],
)
def test_this_machine_and_the_listed_are_trusted(host: str, trusted: tuple[str, ...]) -> None:
    assert is_trusted(host, check_trusted(trusted))


@pytest.mark.parametrize(
    ("host", "trusted"),
    [
        ("example.org", ()),
        ("localhost.example.org", ()),
        ("10.1.2.3", ()),
        ("lab.example", ("*.lab.example",)),
        ("evillab.example", ("*.lab.example",)),
        ("11.0.0.1", ("10.0.0.0/8",)),
        ("fd00::5", ("10.0.0.0/8",)),
        ("2130706433", ()),
    ],
)
def test_everybody_else_is_asked_first(host: str, trusted: tuple[str, ...]) -> None:
    assert not is_trusted(host, check_trusted(trusted))


@pytest.mark.parametrize("entry", ["", "*", "*.", "a b", "http://x", "10.0.0.0/40", "a..b"])
def test_a_list_of_trusted_hosts_holds_hosts_only(entry: str) -> None:
    with pytest.raises(BadSetting):
        check_trusted([entry])


@pytest.mark.skipif(not SPELLINGS.exists(), reason="the shared corpus of payloads is not here")
def test_no_known_spelling_of_a_hostile_address_breaks_the_reader() -> None:
    urls = set(re.findall(r"[a-z]+://[^\s`\"')]+", SPELLINGS.read_text(), re.I))

    for url in urls:
        try:
            sink = SINKS.parse(url)
        except (BadSubscription, SinkRefused):
            continue
        assert sink.host

    assert len(urls) > 50
