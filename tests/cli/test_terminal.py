"""What a person at a terminal sees, and a pipe does not."""

from __future__ import annotations

from cli.shell import at_terminal


def test_there_is_colour_unless_somebody_says_no() -> None:
    assert "\x1b[1m" in at_terminal("explain")[1]
    assert "\x1b" not in at_terminal("explain", NO_COLOR="1")[1]
    assert "\x1b" not in at_terminal("explain", TERM="dumb")[1]


def test_an_event_cannot_command_the_terminal_that_shows_it(broker, topic) -> None:
    broker.publish({"topic": topic, "data": "\x9b31mred \u202eturned"})

    for form in ("--json", "--brief", "--whole", "--format={data}"):
        _, shown = at_terminal(
            "sub", topic, "--all", "--exit-at-end", form, TOCSIN_BROKER=broker.url
        )
        assert "\\u009b31mred \\u202eturned" in shown


def test_a_person_is_asked_before_many_things_are_removed(broker, topic) -> None:
    for _ in range(2):
        filters = [{"topic": topic}]
        broker.call(
            "POST", "/subscriptions", {"sink": "http://127.0.0.1:1234/", "filters": filters}
        )
    remove = ("subs", "rm", "--filter", topic)

    code, shown = at_terminal(*remove, typed=b"n\n", TOCSIN_BROKER=broker.url)
    assert code == 2
    assert "remove 2 subscriptions: " in shown
    code, shown = at_terminal(*remove, typed=b"y\n", TOCSIN_BROKER=broker.url)
    assert code == 0
    assert broker.call("GET", f"/subscriptions?q={topic}")[1]["subscriptions"] == []


def test_the_filter_is_printed_while_nothing_comes(broker, topic) -> None:
    code, shown = at_terminal("sub", topic, "-W", "0.3", TOCSIN_BROKER=broker.url)

    assert code == 6
    assert shown.startswith(f"following topic {topic} at {broker.url}; Ctrl-C stops\r\n")


def test_long_work_shows_how_far_it_is(broker, topic) -> None:
    code, shown = at_terminal("pub", topic, "-", typed=b"1\n2\n\x04", TOCSIN_BROKER=broker.url)

    assert code == 0
    assert "events" in shown
    assert "2 events stored" in shown
