"""Whatever is read of the log is what the reader may read: events, dead letters, topics, runs."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
from principals import as_, event
from rest_site import RestSite, run

from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.ontology import in_use
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.blackboard.normal import TOPIC_ROOT, to_event

ANN = as_("ann")
ARROW = {"accept": "application/vnd.apache.arrow.stream"}
LEAD = {"principal": "ann", "action": "read", "topic": "lead/**"}


def topics(events: list[dict[str, str]]) -> list[str]:
    return [each["topic"] for each in events]


def test_a_page_of_the_log_has_what_the_reader_may_read(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        await site.publish(event(1), event(2, "ops/a"), event(3, "lead/b"), event(4, "ops/b"))

        page = (await site.get(ANN, "/events")).json
        first = (await site.get(ANN, "/events?limit=1")).json
        then = (await site.get(ANN, f"/events?limit=1&after={first['next']}")).json

        assert topics(page["events"]) == ["lead/a", "lead/b"]
        assert topics(first["events"]) == ["lead/a"]
        assert topics(then["events"]) == ["lead/b"]
        assert (await site.get(as_("eve"), "/events")).status == 403
        assert topics((await site.get(as_("admin"), "/events")).json["events"])[0] == "a/b"

    run(tmp_path, script, LEAD)


def test_what_may_be_read_may_depend_on_what_the_event_says(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        await site.publish(event(1, load=1), event(2, load=9))

        page = (await site.get(ANN, "/events")).json
        rows = await arrow_rows(site, "/events?columns=seq,id")

        assert [each["id"] for each in page["events"]] == ["e1"]
        assert [each["id"] for each in rows] == ["e1"]

    run(tmp_path, script, {**LEAD, "filter": "load < 5"})


async def arrow_rows(site: RestSite, target: str) -> list[dict[str, object]]:
    answer = await site.ask(ANN, "GET", target, headers=ARROW)
    assert answer.status == 200
    table: pa.Table = pa.ipc.open_stream(io.BytesIO(answer.body)).read_all()
    return table.to_pylist()


def test_the_log_as_arrow_has_what_the_reader_may_read(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        await site.publish(event(1), event(2, "ops/a"), event(3, "lead/b"))

        rows = await arrow_rows(site, "/events?columns=topic")

        assert rows == [{"topic": "lead/a"}, {"topic": "lead/b"}]

    run(tmp_path, script, LEAD)


def test_a_topic_is_counted_for_who_may_read_every_event_on_it(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        await site.publish(event(1, load=1), event(2, load=9), event(3, "lead/b"))
        await site.publish(event(4, "own/x"), event(5, "own/x"), event(6, load=9))

        listed = (await site.get(ANN, "/topics?sort=events")).json["topics"]

        hidden = {"events": None, "events_per_s": None, "last_seq": None, "last_time": None}
        assert [each["topic"] for each in listed] == ["lead/b", "lead/a", "own/x"]
        assert listed[0]["events"] == 1
        assert listed[0]["last_seq"] == 4
        assert listed[1:] == [{"topic": "lead/a", **hidden}, {"topic": "own/x", **hidden}]

    some = {**LEAD, "topic": "lead/a", "filter": "load < 5"}
    publishes = {**LEAD, "action": "publish", "topic": "own/x"}
    run(tmp_path, script, some, {**LEAD, "topic": "lead/b"}, publishes)


def test_topics_are_listed_to_who_may_do_anything_on_them(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        await site.publish(event(1), event(2, "ops/a"), event(3, "own/x"))

        listed = (await site.get(ANN, "/topics")).json
        tree = (await site.get(ANN, "/soap/topics")).body

        assert [each["topic"] for each in listed["topics"]] == ["lead/a", "own/x"]
        assert b"lead" in tree
        assert b"ops" not in tree
        assert (await site.get(as_("eve"), "/topics")).status == 403
        assert len((await site.get(as_("admin"), "/topics")).json["topics"]) == 4

    run(tmp_path, script, LEAD, {"principal": "ann", "action": "publish", "topic": "own/*"})


def test_dead_letters_are_seen_by_their_owner_while_it_may_have_the_event(tmp_path: Path) -> None:
    subscribes = {"principal": "ann", "action": "subscribe", "topic": "lead/**"}
    other = {"principal": "bob", "action": "subscribe"}

    async def script(site: RestSite) -> None:
        asked = {"sink": "http://127.0.0.1:1/hook", "filters": [{"topic": "lead/**"}]}
        made = await site.ask(ANN, "POST", "/subscriptions", asked)
        assert made.status == 201, made.body
        letter = await buried(site, made.json["id"])
        one = f"/deadletters/{letter}"

        assert len((await site.get(ANN, "/deadletters")).json["deadletters"]) == 1
        assert (await site.get(ANN, one)).status == 200
        assert (await site.get(as_("bob"), "/deadletters")).json["deadletters"] == []
        theirs = await site.get(as_("bob"), one)
        missing = await site.get(as_("bob"), "/deadletters/none")
        assert (theirs.status, theirs.code) == (missing.status, missing.code) == (403, "T215")
        assert (await site.ask(as_("bob"), "DELETE", one)).status == 403
        assert (await site.ask(as_("bob"), "POST", f"{one}/redrive")).status == 403

        site.revoke("ann")
        site.grant({**subscribes, "topic": "ops/**"})

        assert (await site.get(ANN, "/deadletters")).json["deadletters"] == []
        assert (await site.get(ANN, one)).status == 403
        refused = await site.ask(as_("admin"), "POST", f"{one}/redrive")
        assert (refused.status, refused.code) == (403, "T215")
        assert "no right to this event" in refused.body.decode()
        assert (await site.get(as_("admin"), one)).status == 200

    run(tmp_path, script, subscribes, other)


async def buried(site: RestSite, subscription: str) -> str:
    """The id of a dead letter of it."""
    node = site.broker.app.node
    state = node.broker._state
    subscriber = state.by_id[subscription]
    stored = Stored(2, 1, event(1))
    node.broker._push_lanes.dead_letters.bury(subscriber, stored, "no", node.steady_ns())
    letter = next(iter(state.unsaved.dead))
    node.schedule_run()
    await site.publish(event(9, "x"))
    return letter


def said(run: str, *concepts: str, workflow: str = "w") -> Event:
    pairs = {"RunId": run, "WorkflowName": workflow, **dict.fromkeys(concepts, "x")}
    name = f"{run}/{'/'.join(concepts)}"
    return to_event(Message(pairs), id=name, source="/s", vocabulary=in_use())


def test_a_run_is_read_by_who_may_read_all_of_its_events(tmp_path: Path) -> None:
    rules = [
        {"principal": "ann", "action": "read", "topic": f"{TOPIC_ROOT}/lead/**"},
        {"principal": "bob", "action": "read", "resource": "run/r2"},
        {"principal": "cat", "action": "read", "resource": "run/*"},
        {
            "principal": "dan",
            "action": "read",
            "topic": f"{TOPIC_ROOT}/lead/**",
            "filter": "load < 5",
        },
    ]
    names = ("ann", "bob", "cat", "dan", "admin", "eve")

    async def script(site: RestSite) -> None:
        await site.publish(
            said("r1", "WorkflowStarted", workflow="lead"),
            said("r2", "WorkflowStarted", workflow="ops"),
            said("r3", "WorkflowStarted", workflow="lead"),
            said("r3", "WorkflowFailed", workflow="ops"),
        )

        for name, expected in {
            "ann": ["r1"],
            "dan": [],
            "cat": ["r1", "r2", "r3"],
            "admin": ["r1", "r2", "r3"],
        }.items():
            page = (await site.get(as_(name), "/runs")).json
            assert sorted(each["id"] for each in page["runs"]) == expected, name
        first = (await site.get(as_("ann"), "/runs?limit=1")).json
        assert first["next"] is None
        statuses = {
            name: [(await site.get(as_(name), f"/runs/{run}")).status for run in ("r1", "r2", "r3")]
            for name in names
        }
        assert statuses == {
            "ann": [200, 404, 404],
            "bob": [403, 200, 403],
            "cat": [200, 200, 200],
            "dan": [404, 404, 404],
            "admin": [200, 200, 200],
            "eve": [403, 403, 403],
        }
        missing, theirs = [await site.get(ANN, f"/runs/{run}") for run in ("none", "r2")]
        assert missing.body.replace(b"none", b"r2") == theirs.body
        for part in ("events", "activities", "failures", "provenance", "changes", "compare/r1"):
            assert (await site.get(ANN, f"/runs/r1/{part}")).status == 200, part
            assert (await site.get(ANN, f"/runs/r2/{part}")).status == 404, part
        assert (await site.get(ANN, "/runs/r1/compare/r2")).status == 404
        for part in (
            "/runs/r1/estimate",
            "/activities",
            "/files?name=x",
            "/workflows/lead/changes",
        ):
            assert (await site.get(ANN, part)).status == 403, part

    run(tmp_path, script, *rules)
