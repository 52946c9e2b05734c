"""Every example of docs/filters.md does what the manual says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tocsin.errors import BadFilter
from tocsin.event import (
    cloudevents_filters,
    filter_scan,
    topic,
    topic_regex,
    xpath,
    xpath_syntax,
)
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.event import Event
from tocsin.event.filter_eval import matches
from tocsin.event.filter_text import parse_filter
from tocsin.event.value import UNITS

MANUAL = (Path(__file__).parents[2] / "docs/filters.md").read_text()


def fenced(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", MANUAL, re.DOTALL | re.MULTILINE)


def example_cases() -> list[tuple[str, str, str]]:
    cases = []
    for example in fenced("example"):
        wanted, *events = example.splitlines()
        cases += [(wanted, *event.split(maxsplit=1)) for event in events]
    return cases


@pytest.mark.parametrize(("wanted", "answer", "sent"), example_cases())
def test_an_example_of_the_manual(wanted: str, answer: str, sent: str) -> None:
    members = json.loads(sent)
    event = Event(
        id="1",
        source="/manual",
        type="example",
        topic=members.pop("topic", ""),
        data=json.dumps(members).encode(),
    )

    assert matches(parse_filter(wanted), event) is {"yes": True, "no": False}[answer]


def xml_cases() -> list[tuple[str, str, str]]:
    cases = []
    for example in fenced("xml-example"):
        wanted, *events = example.splitlines()
        cases += [(wanted, *event.split(maxsplit=1)) for event in events]
    return cases


@pytest.mark.parametrize(("wanted", "answer", "sent"), xml_cases())
def test_an_xml_example_of_the_manual(wanted: str, answer: str, sent: str) -> None:
    media_type = "application/xml" if sent.startswith("<") else "application/json"
    event = Event(
        id="1",
        source="/manual",
        type="example",
        topic="lead/orders",
        datacontenttype=media_type,
        data=sent.encode(),
    )

    assert matches(parse_filter(wanted), event) is {"yes": True, "no": False}[answer]


def test_the_manual_has_its_examples() -> None:
    assert len(example_cases()) > 50
    assert len(xml_cases()) == 7


def test_the_list_of_filters_in_the_manual_is_read() -> None:
    for filters in fenced("json"):
        read_filters(json.loads(filters))


def test_the_error_in_the_manual_is_the_error() -> None:
    [shown] = fenced("error")

    with pytest.raises(BadFilter) as caught:
        parse_filter(shown.splitlines()[0])

    assert f"{caught.value.pointed()}\n{caught.value}\n" == shown


def test_the_manual_names_every_unit_and_limit() -> None:
    for unit in UNITS:
        assert f"`{unit}`" in MANUAL
    for limit in (
        filter_scan.FILTER_CHARS_MAX,
        filter_scan.FILTER_DEPTH_MAX,
        filter_scan.FILTER_PREDICATES_MAX,
        filter_scan.NAME_CHARS_MAX,
        cloudevents_filters.FILTERS_DEPTH_MAX,
        cloudevents_filters.FILTERS_NODES_MAX,
        topic.ALTERNATIVES_MAX,
        topic_regex.CHARS_MAX,
        topic_regex.PROGRAM_SIZE_MAX,
        xpath_syntax.EXPRESSION_CHARS_MAX,
        xpath_syntax.EXPRESSION_DEPTH_MAX,
        xpath_syntax.EXPRESSION_PARTS_MAX,
        xpath.NAMESPACES_MAX,
    ):
        assert f"| {limit} |" in MANUAL


def test_the_topic_dialects_in_the_table_are_read() -> None:
    written = re.findall(r"^\| `(topic \w+:'.*?')` \|", MANUAL, re.MULTILINE)

    assert len(written) == 8
    for text in written:
        parse_filter(text.replace(r"\|", "|"))
