"""A token with rights of its own is shown, in every list, what it may also look at: what its
principal made with other rights is not in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from principals import as_
from rest_site import RestSite, run
from test_reads import buried

from tocsin.access.decision import Action
from tocsin.access.policy.rights import Right
from tocsin.access.policy.tokens import Token, hash_of
from tocsin.access.session import Session
from tocsin.event.topic import TopicPattern

ANN = as_("ann")
RULES: list[dict[str, object]] = [
    {"principal": "ann", "action": ["publish", "subscribe"]},
    *(
        {"principal": "ann", "action": "publish", "resource": f"{kind}/*"}
        for kind in ("resource", "directory", "blackboard/publisher")
    ),
]
ENTRY = {"kind": "producer", "address": "gma://127.0.0.1:9", "events": ["Load"]}
RESOURCE = {"model": "static", "advertisement": "system = Linux"}
# By the list: what is made for it, its members there, and which of those is its id.
LISTS: dict[str, tuple[dict[str, Any], str]] = {
    "/directory": ({**ENTRY, "name": "NAME"}, "entries"),
    "/resources": ({**RESOURCE, "id": "NAME"}, "resources"),
    "/discoveries": ({"model": "static continuous", "request": "system = Linux"}, "discoveries"),
    "/blackboard/publishers": ({"address": "http://127.0.0.1:9/NAME"}, "publishers"),
    "/subscriptions": ({"sink": "http://127.0.0.1:9/NAME", "filters": []}, "subscriptions"),
    "/boxes": ({}, "boxes"),
}


def scoped(site: RestSite, token_id: str, topic: str = "**") -> Session:
    """One of ann's tokens, which an administrator gave rights of its own."""
    events = Right(frozenset(Action), TopicPattern(tuple(topic.split("/"))))
    makes = frozenset({Action.PUBLISH})
    rights = tuple(
        Right(makes, resource=f"{kind}/*") for kind in ("resource", "directory", "blackboard")
    )
    narrow = Right(events.actions - {Action.READ, Action.MANAGE}, events.topic)
    token = Token(token_id, "ann", hash_of("s"), 0, rights=(narrow, *rights))
    site.policy.set_token(token)
    return as_("ann", key=token.key)


def named(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {
        key: each.replace("NAME", name) if isinstance(each, str) else each
        for key, each in body.items()
    }


@pytest.mark.parametrize("path", LISTS)
def test_a_list_has_what_the_same_rights_made(path: str, tmp_path: Path) -> None:
    body, members = LISTS[path]

    async def script(site: RestSite) -> None:
        token, like_it, narrower = (
            scoped(site, "ab", "lead/**"),
            scoped(site, "cd", "lead/**"),
            scoped(site, "ef", "lead/a"),
        )
        made: dict[Session, str] = {}
        for number, who in enumerate((ANN, token)):
            answer = await site.ask(who, "POST", path, named(body, f"n{number}"))
            assert answer.status == 201, answer.body
            made[who] = answer.json["id"]

        async def listed(who: Session) -> list[str]:
            answer = await site.get(who, path)
            assert answer.status == 200, answer.body
            return [each["id"] for each in answer.json[members] if each["id"] in made.values()]

        assert await listed(ANN) == [made[ANN]]
        assert await listed(token) == await listed(like_it) == [made[token]]
        assert await listed(narrower) == []
        assert sorted(await listed(as_("admin"))) == sorted(made.values())
        for who in (ANN, token, like_it, narrower):  # what is listed can be looked at, and no more
            for one in made.values():
                shown = await site.get(who, f"{path}/{one}")
                if shown.status != 405:
                    assert (shown.status == 200) is (one in await listed(who)), (who, one)

    run(tmp_path, script, *RULES)


def test_resources_are_found_by_who_may_look_at_them(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        token, narrower = scoped(site, "ab", "lead/**"), scoped(site, "cd", "lead/a")
        for name, who in (("n1", ANN), ("n2", token)):
            asked = {**RESOURCE, "id": name}
            assert (await site.ask(who, "POST", "/resources", asked)).status == 201

        async def found(who: Session) -> list[str]:
            answer = await site.ask(who, "POST", "/discoveries", {"request": "system = Linux"})
            assert answer.status == 200, answer.body
            return [each["id"] for each in answer.json["resources"]]

        assert (await found(ANN), await found(token), await found(narrower)) == (["n1"], ["n2"], [])

    run(tmp_path, script, *RULES)


def test_dead_letters_are_shown_to_who_reaches_their_subscription(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        token = scoped(site, "ab", "lead/**")
        asked = {"sink": "http://127.0.0.1:1/hook", "filters": [{"topic": "lead/**"}]}
        made = await site.ask(ANN, "POST", "/subscriptions", asked)
        letter = await buried(site, made.json["id"])

        listed = (await site.get(ANN, "/deadletters")).json["deadletters"]
        assert [each["id"] for each in listed] == [letter]
        assert (await site.get(token, "/deadletters")).json["deadletters"] == []
        assert (await site.get(token, f"/deadletters/{letter}")).status == 403
        await site.ask(ANN, "DELETE", f"/subscriptions/{made.json['id']}")
        assert (await site.get(token, "/deadletters")).json["deadletters"] == []

    run(tmp_path, script, *RULES)


def test_a_token_with_rights_of_its_own_is_shown_no_other_token(tmp_path: Path) -> None:
    async def script(site: RestSite) -> None:
        service = site.broker.app.access_control.service
        for token in ("ab", "cd"):
            scoped(site, token)
        service.policy._tokens.update(site.policy.tokens)

        def listed(who: Session) -> list[str]:
            return [each.id for each in service.list_tokens(who)]

        assert listed(as_("ann", key="token/ab")) == ["ab"]
        assert listed(ANN) == ["ab", "cd"]

    run(tmp_path, script, *RULES)
