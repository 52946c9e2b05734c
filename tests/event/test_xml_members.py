"""Content filters look into XML payloads, as they look into JSON."""

from __future__ import annotations

import pytest

from tocsin.event.event import Event, visible
from tocsin.event.filter_eval import matches
from tocsin.event.filter_text import parse_filter
from tocsin.event.value import Quantity

LOAD = b"""<?xml version="1.0"?>
<p:UptimeCPULoad xmlns:p="http://www.gridforum.org/Performance/Events">
  <p:Load5> 7.5 </p:Load5>
  <p:HostName>foo.gov</p:HostName>
  <p:Disk><p:Free units="GB" accuracy="+/-1">3</p:Free></p:Disk>
  <p:Load5>1</p:Load5>
</p:UptimeCPULoad>"""


def xml(data: bytes, media_type: str | None = "application/xml") -> Event:
    return Event("1", "/s", "t", datacontenttype=media_type, data=data)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("Load5 >= 5", True),
        ("Load5 >= 8", False),
        ("HostName = foo.gov", True),
        ("Disk.Free >= 2000 MB", True),
        ("Disk.Free > 3 GB", False),
        ("UptimeCPULoad exists", False),
    ],
)
def test_a_filter_asks_for_the_elements_of_a_payload(text: str, passes: bool) -> None:
    assert matches(parse_filter(text), xml(LOAD)) is passes


def test_elements_are_named_with_those_around_them_and_the_first_counts() -> None:
    seen = visible(xml(LOAD))
    assert seen["Load5"] == "7.5"
    assert seen["Disk.Free"] == Quantity("3", "GB", "+/-1")


def test_context_hides_an_element_of_the_same_name() -> None:
    assert visible(xml(b"<a><type>x</type></a>"))["type"] == "t"


@pytest.mark.parametrize(
    "event",
    [
        xml(b"<a><b>1</b>"),
        xml(b"<!DOCTYPE a [<!ENTITY c '1'>]><a><b>&c;</b></a>"),
        xml(b"<a><b>1</b></a>", "text/plain"),
        xml(b"<a><b>1</b></a>", None),
        xml(b"\xff"),
        xml(b"<" + b"a" * 60_000),
    ],
)
def test_what_is_no_xml_or_does_not_say_so_shows_nothing(event: Event) -> None:
    assert "b" not in visible(event)


def test_many_and_deep_elements_are_bounded() -> None:
    wide = b"<a>" + b"".join(b"<b%d>1</b%d>" % (n, n) for n in range(5_000)) + b"</a>"
    assert len(visible(xml(wide))) <= 1_000 + 10
    deep = b"<b>" * 90 + b"1" + b"</b>" * 90
    assert not any(name.startswith("b") for name in visible(xml(deep)))
