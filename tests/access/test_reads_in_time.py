"""What is read is what the reader may read when it is answered, and not only when it was asked:
reads take their turns, and wait."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from principals import Site, as_, event
from rest_site import RestSite, run
from test_reads import buried, said

from tocsin.access.session import Session
from tocsin.drivers.monitor.monitor import Monitor
from tocsin.errors import NotAllowed, NotSignedIn
from tocsin.event.instant import NS_PER_S
from tocsin.overlay.time_of_day import NO_ZONES
from tocsin.services.blackboard.board import Board
from tocsin.services.discovery.factory import open_discovery
from tocsin.services.soap.call import SoapCall
from tocsin.wire.api.resource_request import read_discovery, read_resource
from tocsin.wire.blackboard.normal import TOPIC_ROOT
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.normal import name_of_event
from tocsin.wire.gma.read import read as read_performance
from tocsin.wire.soap.envelope import content_type, write_envelope
from tocsin.wire.soap.names import WSN13

ANN = as_("ann")
LEAD = {"principal": "ann", "action": "read", "topic": "lead/**"}
OPS = {"principal": "ann", "action": "read", "topic": "ops/**"}
LEAD_ID, OPS_ID = "1", "2"  # behind the administrator's


def while_reading(site: RestSite, happens: Callable[[], None]) -> None:
    """This happens when the log has been read, before that is answered."""
    engine = site.port._engine
    read = engine.read

    async def slow(work: Any) -> Any:
        found = await read(work)
        happens()
        return found

    engine.read = slow  # type: ignore[method-assign]


def losing(site: RestSite, *rules: str) -> Callable[[], None]:
    return lambda: site.policy.set_rules([], rules)


def test_a_page_leaves_out_what_may_not_be_read_any_more(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        await site.publish(event(1), event(2, "ops/a"), event(3))
        while_reading(site, losing(site, LEAD_ID))

        page = (await site.get(ANN, "/events")).json

        assert [each["topic"] for each in page["events"]] == ["ops/a"]
        assert page["next"] == 4
        assert page["sequences"] == [3]

    run(tmp_path, script, LEAD, OPS)


def test_signatures_are_those_of_the_events_that_are_left(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        await site.publish(event(1), event(2, "ops/a"), event(3))
        while_reading(site, losing(site, LEAD_ID))

        page = (await site.get(ANN, "/events?signatures=yes")).json

        assert len(page["signatures"]) == len(page["events"]) == 1

    run(tmp_path, script, LEAD, OPS)


def test_who_may_read_nothing_any_more_is_refused_and_told_no_place(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        await site.publish(event(1))
        while_reading(site, losing(site, LEAD_ID))

        answer = await site.get(ANN, "/events")

        assert (answer.status, answer.code) == (403, "T215")

    run(tmp_path, script, LEAD)


def test_who_is_signed_in_no_more_is_refused(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        await site.publish(event(1))
        ends_ns = site.policy.now_ns() + 3_600 * NS_PER_S

        def later() -> None:
            site.policy.now_ns = lambda: ends_ns

        while_reading(site, later)

        answer = await site.get(as_("ann", ends_ns=ends_ns), "/events")

        assert (answer.status, answer.code) == (401, "T216")

    run(tmp_path, script, LEAD)


def test_dead_letters_leave_out_those_whose_events_may_not_be_had_any_more(tmp_path: Path) -> None:
    subscribes = {"principal": "ann", "action": "subscribe", "topic": "lead/**"}
    other = {**subscribes, "topic": "ops/**"}

    async def script(site: RestSite) -> None:
        asked = {"sink": "http://127.0.0.1:1/hook", "filters": [{"topic": "lead/**"}]}
        made = await site.ask(ANN, "POST", "/subscriptions", asked)
        await buried(site, made.json["id"])
        assert len((await site.get(ANN, "/deadletters")).json["deadletters"]) == 1
        while_reading(site, losing(site, LEAD_ID))

        assert (await site.get(ANN, "/deadletters")).json["deadletters"] == []

    run(tmp_path, script, subscribes, other)


def current(topic: str, session: Session) -> SoapCall:
    asked = f'<w:GetCurrentMessage xmlns:w="{WSN13}"><w:Topic>{topic}</w:Topic>'
    body = write_envelope("1.2", body=f"{asked}</w:GetCurrentMessage>".encode())
    kind = content_type("1.2")
    return SoapCall(body, kind, "", "/soap", "", "http://x", session)


def test_the_current_message_is_none_that_may_not_be_read_any_more(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        await site.publish(event(1, load=1), event(2, load=9))
        answer = site.broker.soap.dispatcher.answer
        assert (await answer(current("lead/a", ANN))).status == 200
        while_reading(site, losing(site, LEAD_ID))  # the last one that it may have is looked for

        refused = await answer(current("lead/a", ANN))

        assert refused.status >= 400
        assert b"NoCurrentMessageOnTopicFault" in refused.body

    others = {**LEAD, "filter": "load > 100"}
    run(tmp_path, script, {**LEAD, "filter": "load < 5"}, others)


def test_a_query_finds_no_event_that_may_not_be_read_any_more(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        await site.publish(event(1))
        service = site.broker.app.performance_service()
        request = m.QueryRequest("1", m.Parameters(name_of_event(event(1))))
        found = read_performance(await service.query(request, ANN))
        assert isinstance(found, m.QueryReply)
        assert found.event is not None
        while_reading(site, losing(site, LEAD_ID))

        reply = read_performance(await service.query(request, ANN))

        assert isinstance(reply, m.QueryReply)
        assert reply.event is None

    run(tmp_path, script, LEAD, OPS)


def test_runs_are_those_that_may_be_read_when_they_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = {"principal": "ann", "action": "read", "topic": f"{TOPIC_ROOT}/lead/**"}
    other = {"principal": "ann", "action": "read", "topic": f"{TOPIC_ROOT}/ops/**"}
    ask = Monitor.ask

    async def script(site: RestSite) -> None:
        await site.publish(
            said("r1", "WorkflowStarted", workflow="lead"),
            said("r2", "WorkflowStarted", workflow="ops"),
        )
        assert len((await site.get(ANN, "/runs")).json["runs"]) == 2

        async def slow(self: Monitor, question: Any) -> Any:
            found = await ask(self, question)
            site.policy.set_rules([], [LEAD_ID])
            monkeypatch.setattr(Monitor, "ask", ask)
            return found

        monkeypatch.setattr(Monitor, "ask", slow)
        runs = (await site.get(ANN, "/runs")).json["runs"]

        assert [each["id"] for each in runs] == ["r2"]

    run(tmp_path, script, rule, other)


def test_rights_that_change_each_time_that_runs_are_asked_for_end_in_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = {"principal": "ann", "action": "read", "topic": f"{TOPIC_ROOT}/**"}
    ask = Monitor.ask

    async def script(site: RestSite) -> None:
        async def slow(self: Monitor, question: Any) -> Any:
            found = await ask(self, question)
            site.grant({"principal": "somebody else", "action": "read"})
            return found

        monkeypatch.setattr(Monitor, "ask", slow)

        assert (await site.get(ANN, "/runs")).status == 503

    run(tmp_path, script, rule)


# Those that wait


SUBSCRIBES = {"principal": "ann", "action": "subscribe"}


def test_who_waits_for_a_box_gets_nothing_once_the_token_is_revoked_and_nothing_is_lost() -> None:
    site = Site(SUBSCRIBES)
    ann = as_("ann", key="openid/1")
    box = site.subscribe(ann, None).subscription.id
    waiting = site.runtime.spawn(site.port.pull(as_("ann", key="openid/2"), box, 10, 10**10, None))
    site.runtime.settle()

    site.policy.set_revoked(["openid/2"])
    site.publish(event(1))
    site.runtime.settle()

    assert isinstance(waiting.error, NotSignedIn)
    pulled = site.runtime.run(site.port.pull(ann, box, 10, 0, None))
    assert [each.event.id for each in pulled.events] == ["e1"]


def test_what_was_taken_for_who_is_signed_in_no_more_is_given_back() -> None:
    site = Site(SUBSCRIBES)
    ann = as_("ann", key="openid/1")
    box = site.subscribe(ann, None).subscription.id
    waiting = site.runtime.spawn(site.port.take(as_("ann", key="openid/2"), box, 10, 10**10))
    site.runtime.settle()

    site.policy.set_revoked(["openid/2"])
    site.publish(event(1))
    site.runtime.settle()

    assert isinstance(waiting.error, NotSignedIn)
    pulled, _ = site.runtime.run(site.port.take(ann, box, 10, 0))
    assert [each.event.id for each in pulled.events] == ["e1"]


def test_who_waits_for_another_profile_is_asked_again_when_there_is_one() -> None:
    site = Site({"principal": "ann", "action": "read", "resource": "blackboard/*"})
    board = Board(site.port)
    version = board.profile.version
    waiting = site.runtime.spawn(board.profile_after(ANN, version, 10.0))
    site.runtime.settle()

    site.revoke("ann")
    site.runtime.pass_s(11)

    assert isinstance(waiting.error, NotAllowed)


def test_resources_are_those_that_may_be_read_when_all_have_answered() -> None:
    rules = [{"principal": "ann", "action": "read", "resource": f"resource/{n}"} for n in "ab"]
    site = Site(*rules)
    discovery = open_discovery(site.port, "broker", NO_ZONES)
    for name in "ab":
        asked = {"id": name, "model": "static", "advertisement": "load = 1"}
        site.runtime.run(discovery.resources.register(as_("admin"), read_resource(asked)))
    find = read_discovery({"request": "load > 0"})
    answer = site.runtime.run(discovery.discover(ANN, find))
    assert sorted(each.resource.id for each in answer.found) == ["a", "b"]
    perform = discovery.driver.perform

    def answered(effects: Any) -> None:
        perform(effects)
        site.policy.set_rules([], [LEAD_ID])

    discovery.driver.perform = answered  # type: ignore[method-assign]
    answer = site.runtime.run(discovery.discover(ANN, find))

    assert [each.resource.id for each in answer.found] == ["b"]
