"""Topics of control messages, and what events and subscriptions are kept from."""

from __future__ import annotations

import pytest

from tocsin.errors import BadControlMessage, ReservedTopic
from tocsin.event.control_topic import (
    NODES,
    RIGHTS,
    TOPICS,
    ControlGroup,
    ControlTopic,
    check_events,
    check_filter,
    entity_topic,
)
from tocsin.event.event import Event
from tocsin.event.filter_text import parse_filter


@pytest.mark.parametrize(
    ("text", "group", "name"),
    [
        (TOPICS, ControlGroup.TOPICS, ""),
        (f"{TOPICS}/5eed", ControlGroup.TOPICS, "5eed"),
        (NODES, ControlGroup.NODES, ""),
        (f"{NODES}/a.b_c:d-1", ControlGroup.NODES, "a.b_c:d-1"),
        (RIGHTS, ControlGroup.RIGHTS, ""),
        (entity_topic("5eed"), ControlGroup.ENTITY, "5eed"),
    ],
)
def test_a_control_topic_says_what_it_is_about(text: str, group: ControlGroup, name: str) -> None:
    assert ControlTopic.parse(text) == ControlTopic(group, name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "Entity",
        "Entity/",
        "Entity/a/b",
        "Entity/*",
        "Entity/a b",
        f"Entity/{'a' * 65}",
        "entity/a",
        "Services/Discovery",
        "Services/Discovery/Other",
        f"{TOPICS}/",
        f"{TOPICS}/a/b",
        f"{TOPICS}/**",
        f"{RIGHTS}/a",
        f" {TOPICS}",
        "Entity/\n",
        "Entity/a\n",
    ],
)
def test_everything_else_is_none(text: str) -> None:
    with pytest.raises(BadControlMessage):
        ControlTopic.parse(text)


@pytest.mark.parametrize(
    ("topic", "is_reserved"),
    [
        ("Entity", True),
        ("Entity/a", True),
        ("Entity/a/b", True),
        ("Services/Discovery", True),
        (TOPICS, True),
        ("Services/Discovery/Anything/else", True),
        ("Entities/a", False),
        ("EntityX", False),
        ("entity/a", False),
        ("Services", False),
        ("Services/Other", False),
        ("Services/DiscoveryX", False),
        ("a/Entity/b", False),
        ("", False),
    ],
)
def test_no_event_is_on_a_reserved_topic(topic: str, is_reserved: bool) -> None:
    events = [Event("1", "/s", "t", topic="a"), Event("2", "/s", "t", topic=topic)]
    if is_reserved:
        with pytest.raises(ReservedTopic):
            check_events(events)
    else:
        check_events(events)


@pytest.mark.parametrize(
    ("text", "is_reserved"),
    [
        ("topic Entity/**", True),
        ("topic Entity/*/a", True),
        ("topic Entity", True),
        ("topic Services/Discovery/**", True),
        (f"topic {TOPICS} and load5 > 1", True),
        ("topic a/** or topic Entity/a", True),
        ("text topic = 'Entity/a'", True),
        ("text topic prefix 'Entity/'", True),
        ("text topic prefix 'Services/Discovery/T'", True),
        ("topic **", False),
        ("everything", False),
        ("topic Services/**", False),
        ("topic */Discovery", False),
        ("topic */a", False),
        ("topic Entities/**", False),
        ("text topic prefix 'Entity'", False),
        ("text topic prefix 'Services'", False),
        ("text subject = 'Entity/a'", False),
        ("topic ** and not topic Entity/**", False),
    ],
)
def test_a_filter_that_names_a_reserved_topic_is_refused(text: str, is_reserved: bool) -> None:
    filter = parse_filter(text)
    if is_reserved:
        with pytest.raises(ReservedTopic):
            check_filter(filter)
    else:
        check_filter(filter)
