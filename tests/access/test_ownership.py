"""Whoever made a thing goes on with it; of somebody else's nobody learns that it is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from principals import Site, as_, event
from rest_site import RestSite, run

from manual_runtime import ManualRuntime
from tocsin.access.decision import BoxAccess
from tocsin.access.session import Session
from tocsin.errors import NoSuchBox, NotAllowed
from tocsin.services.blackboard.subscribers import Subscribers
from tocsin.services.mailbox.mailboxes import Mailboxes, MailboxOptions
from tocsin.wire.msgbox.content import BoxMessage

ANN, BOB, ADMIN = as_("ann"), as_("bob"), as_("admin")
RULES: list[dict[str, object]] = [
    {"principal": name, "action": action, "topic": "lead/**"}
    for name in ("ann", "bob")
    for action in ("subscribe", "publish")
] + [
    {"principal": name, "action": "publish", "resource": f"{kind}/*"}
    for name in ("ann", "bob")
    for kind in ("resource", "directory", "blackboard/publisher")
]
HOOK = {"sink": "http://127.0.0.1:1/hook", "filters": [{"topic": "lead/**"}]}
RESOURCE = {"id": "node7", "model": "static", "advertisement": "system = Linux"}
ENTRY = {"kind": "producer", "name": "p", "address": "gma://127.0.0.1:9", "events": ["Load"]}


async def refused_alike(site: RestSite, method: str, path: str, missing: str, body: object) -> None:
    """For somebody else, as for what is not there; nothing is changed."""
    theirs = await site.ask(BOB, method, path, body)
    none = await site.ask(BOB, method, missing, body)
    mine, its = path.rsplit("/")[2], missing.rsplit("/")[2]
    assert theirs.status == none.status == 403, (method, path, theirs.body, none.body)
    assert theirs.body.replace(mine.encode(), its.encode()) == none.body


def test_a_subscription_is_its_makers(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        made = (await site.ask(ANN, "POST", "/subscriptions", HOOK)).json
        one = f"/subscriptions/{made['id']}"
        assert made["owner"] == "ann"

        for method, body in (("GET", None), ("PATCH", {"state": "paused"}), ("DELETE", None)):
            await refused_alike(site, method, one, "/subscriptions/none", body)
        assert (await site.get(BOB, "/subscriptions")).json["total"] == 0
        assert (await site.get(ANN, "/subscriptions")).json["total"] == 1
        assert (await site.get(ADMIN, "/subscriptions")).json["total"] == 1
        assert (await site.ask(ANN, "PATCH", one, {"state": "paused"})).status == 200
        assert (await site.ask(ANN, "DELETE", one)).status == 204

    run(tmp_path, script, *RULES)


def test_who_may_manage_gives_a_subscription_to_somebody(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        made = (await site.ask(ADMIN, "POST", "/boxes", {})).json
        one = f"/boxes/{made['id']}"
        assert (await site.get(ANN, one)).status == 403
        assert (await site.ask(ANN, "PATCH", one, {"owner": "ann"})).status == 403

        given = await site.ask(ADMIN, "PATCH", one, {"owner": "ann"})
        await site.publish(event(1), event(2, "ops/a"))

        assert given.json["owner"] == "ann"
        pulled = (await site.get(ANN, f"{one}/messages")).json
        assert [each["topic"] for each in pulled["events"]] == ["lead/a"]
        assert (await site.ask(ANN, "PATCH", one, {"owner": "bob"})).status == 403
        for name in ("anonymous", "broker", " x", ""):
            assert (await site.ask(ADMIN, "PATCH", one, {"owner": name})).status == 400, name

    run(tmp_path, script, *RULES)


def test_who_may_only_manage_gives_nobody_a_subscription_that_sends_elsewhere(
    tmp_path: Path,
) -> None:
    """It would get at its own sink what the new owner may have."""
    manages: dict[str, object] = {
        "principal": "bob",
        "action": "manage",
        "resource": "subscription/*",
    }
    more: dict[str, object] = {"principal": "ann", "action": "subscribe", "topic": "ops/**"}

    async def script(site: RestSite) -> None:
        asked = {**HOOK, "filters": []}
        one = f"/subscriptions/{(await site.ask(BOB, 'POST', '/subscriptions', asked)).json['id']}"

        given = await site.ask(BOB, "PATCH", one, {"owner": "ann"})

        assert given.status == 403
        assert (await site.get(BOB, one)).json["owner"] == "bob"
        assert (await site.ask(ADMIN, "PATCH", one, {"owner": "ann"})).status == 200

    run(tmp_path, script, *RULES, manages, more)


def test_a_resource_is_its_makers(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        assert (await site.ask(ANN, "POST", "/resources", RESOURCE)).status == 201
        assert (await site.ask(ANN, "POST", "/resources", RESOURCE)).status == 200

        assert (await site.ask(BOB, "POST", "/resources", RESOURCE)).status == 403
        assert (await site.ask(BOB, "DELETE", "/resources/node7")).status == 403
        await refused_alike(site, "GET", "/resources/node7", "/resources/none", None)
        assert (await site.get(BOB, "/resources")).json["resources"] == []
        assert len((await site.get(ANN, "/resources")).json["resources"]) == 1
        assert (await site.ask(ADMIN, "DELETE", "/resources/node7")).status == 204
        assert (await site.ask(BOB, "POST", "/resources", RESOURCE)).status == 201

    run(tmp_path, script, *RULES)


def test_what_is_called_own_is_its_makers_too(tmp_path: Path) -> None:
    """`resource/own` is also how it is asked whether somebody can have one at all."""

    async def script(site: RestSite) -> None:
        made = await site.ask(ANN, "POST", "/resources", {**RESOURCE, "id": "own"})
        assert made.status == 201

        assert (await site.get(BOB, "/resources/own")).status == 403
        assert (await site.get(BOB, "/resources")).json["resources"] == []
        assert (await site.get(ANN, "/resources/own")).status == 200

    run(tmp_path, script, *RULES)


def test_a_discovery_leaves_out_what_the_asker_may_not_read(tmp_path: Path) -> None:
    cat = {"principal": "cat", "action": ["read", "subscribe"], "resource": "resource/node8"}

    async def script(site: RestSite) -> None:
        for name, who in (("node7", ANN), ("node8", BOB), ("node9", BOB)):
            asked = {**RESOURCE, "id": name}
            assert (await site.ask(who, "POST", "/resources", asked)).status == 201
        request = {"request": "system = Linux"}

        async def found(session: Session, **more: object) -> list[str]:
            answer = await site.ask(session, "POST", "/discoveries", {**request, **more})
            assert answer.status == 200, answer.body
            return sorted(each["id"] for each in answer.json["resources"])

        assert await found(ANN) == ["node7"]
        assert await found(ANN, first=1) == ["node7"]
        assert await found(as_("cat")) == ["node8"]
        assert await found(ADMIN) == ["node7", "node8", "node9"]
        assert (await site.ask(as_("eve"), "POST", "/discoveries", request)).status == 403

    run(tmp_path, script, *RULES, cat)


def test_a_continuous_request_is_its_makers(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        asked = {"request": "system = Linux", "model": "static continuous"}
        made = await site.ask(ANN, "POST", "/discoveries", asked)
        assert made.status == 201, made.body
        one = f"/discoveries/{made.json['id']}"

        for method in ("GET", "DELETE"):
            await refused_alike(site, method, one, "/discoveries/none", None)
        assert (await site.ask(ANN, "DELETE", one)).status == 204

    run(tmp_path, script, *RULES)


def test_an_entry_of_the_directory_is_its_makers(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        made = await site.ask(ANN, "POST", "/directory", ENTRY)
        assert made.status == 201, made.body
        one = f"/directory/{made.json['id']}"

        assert (await site.ask(BOB, "POST", "/directory", ENTRY)).status == 403
        assert (await site.ask(BOB, "PUT", one, ENTRY)).status == 403
        assert (await site.ask(BOB, "DELETE", one)).status == 403
        await refused_alike(site, "GET", one, "/directory/none", None)
        assert (await site.get(BOB, "/directory")).json["entries"] == []
        assert len((await site.get(ANN, "/directory")).json["entries"]) == 1
        assert (await site.ask(ANN, "DELETE", one)).status == 204

    run(tmp_path, script, *RULES)


def test_a_publisher_of_the_blackboard_is_its_makers(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        asked = {"address": "http://127.0.0.1:1/p"}
        made = await site.ask(ANN, "POST", "/blackboard/publishers", asked)
        assert made.status == 201, made.body
        one = f"/blackboard/publishers/{made.json['id']}"

        assert (await site.ask(BOB, "POST", "/blackboard/publishers", asked)).status == 403
        assert (await site.ask(BOB, "DELETE", one)).status == 403
        assert (await site.get(BOB, "/blackboard/publishers")).json["publishers"] == []
        assert len((await site.get(ANN, "/blackboard/publishers")).json["publishers"]) == 1
        assert (await site.ask(ANN, "DELETE", one)).status == 204

    run(tmp_path, script, *RULES)


def test_two_may_subscribe_the_same_address_to_the_blackboard_and_neither_takes_over() -> None:
    site = Site(
        {"principal": "ann", "action": "subscribe"}, {"principal": "bob", "action": "subscribe"}
    )
    subscribers = Subscribers(site.port)
    first, _ = site.runtime.run(subscribers.subscribe(ANN, "http://s", ["RunId"]))
    second, is_new = site.runtime.run(subscribers.subscribe(BOB, "http://s", ["ExitCode"]))

    assert is_new
    assert first.subscription.id != second.subscription.id
    assert site.port.view(ADMIN, first.subscription.id).filter == first.filter
    site.runtime.run(subscribers.unsubscribe(BOB, "http://s"))
    assert [each.subscription.id for each in site.port.views(ADMIN)] == [first.subscription.id]


def boxes(site: Site) -> Mailboxes:
    runtime = ManualRuntime(access=BoxAccess(site.policy))
    options = MailboxOptions(
        boxes_max=9, backlog=9, lease_s=60, redeliver_s=60, message_bytes_max=999
    )
    found = Mailboxes(lambda: runtime.port, options)
    site.runtime = runtime
    return found


def test_a_soap_box_is_its_makers_and_who_may_publish_sends_to_it() -> None:
    site = Site(*RULES, {"principal": "cat", "action": "read"})
    mailboxes = boxes(site)
    run = site.runtime.run
    token = run(mailboxes.create(ANN))
    run(mailboxes.store(BOB, token, [BoxMessage(body=b"<a/>")]))

    with pytest.raises(NotAllowed):
        run(mailboxes.create(as_("cat")))
    with pytest.raises(NotAllowed):
        run(mailboxes.store(as_("cat"), token, [BoxMessage(body=b"<a/>")]))
    with pytest.raises(NotAllowed) as theirs:
        run(mailboxes.take(BOB, token, 9))
    with pytest.raises(NotAllowed) as missing:
        run(mailboxes.take(BOB, "none", 9))
    assert str(theirs.value).replace(token, "none") == str(missing.value)
    with pytest.raises(NotAllowed):
        run(mailboxes.destroy(BOB, token))
    assert len(run(mailboxes.take(ANN, token, 9)).messages) == 1
    run(mailboxes.destroy(ANN, token))
    with pytest.raises(NoSuchBox):
        run(mailboxes.take(ADMIN, token, 9))


def test_after_a_restart_everything_is_its_makers_still(tmp_path: Path) -> None:
    made: list[str] = []

    async def before(site: RestSite) -> None:
        for path, body in (
            ("/subscriptions", HOOK),
            ("/boxes", {}),
            ("/resources", RESOURCE),
            ("/directory", ENTRY),
            ("/blackboard/publishers", {"address": "http://127.0.0.1:1/p"}),
        ):
            answer = await site.ask(ANN, "POST", path, body)
            assert answer.status == 201, answer.body
            made.append(f"{path}/{answer.json['id']}")

    async def after(site: RestSite) -> None:
        for one in made:
            assert (await site.ask(BOB, "DELETE", one)).status == 403, one
            assert (await site.ask(ANN, "DELETE", one)).status == 204, one

    run(tmp_path, before, *RULES)
    run(tmp_path, after, *RULES)
