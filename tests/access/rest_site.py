"""A whole broker with rules, asked by its REST endpoints, by whoever has signed in."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop
from principals import ADMIN
from refusing import Refusing, refusing

from tocsin.access.policy.policy import Policy
from tocsin.access.policy.rights import read_rule
from tocsin.access.session import Session, internal
from tocsin.broker.port import BrokerPort
from tocsin.drivers.http.rest import app as rest_app
from tocsin.drivers.http.session import SCOPE_KEY
from tocsin.event.event import Event

Message = MutableMapping[str, Any]


@dataclass
class Answer:
    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json.get("code", ""))


class RestSite:
    """See the module."""

    def __init__(self, broker: Refusing, policy: Policy) -> None:
        self.broker = broker
        self.policy = policy
        self._app = rest_app.application(broker.rest, broker.http.server)
        policy.now_ns = broker.app.node.now_ns
        policy.changed.append(broker.app.node.rights_changed)

    @property
    def port(self) -> BrokerPort:
        return self.broker.app.port

    def grant(self, *rules: dict[str, object]) -> None:
        first = len(self.policy.rules)
        self.policy.set_rules(
            read_rule(rule, str(first + number), self.policy.now_ns())
            for number, rule in enumerate(rules)
        )

    def revoke(self, principal: str) -> None:
        gone = [id for id, rule in self.policy.rules.items() if rule.principal == principal]
        self.policy.set_rules([], gone)

    async def publish(self, *events: Event) -> None:
        await self.port.publish(internal("test"), list(events))

    async def ask(
        self,
        session: Session,
        method: str,
        target: str,
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        path, _, query = target.partition("?")
        data = b"" if body is None else json.dumps(body).encode()
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"host", b"x")]
            + [(name.encode(), value.encode()) for name, value in (headers or {}).items()],
            SCOPE_KEY: session,
        }
        sent: list[Message] = []
        was_read = False

        async def receive() -> Message:
            nonlocal was_read
            if was_read:
                await asyncio.sleep(3600)
            was_read = True
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await asyncio.wait_for(self._app(scope, receive, send), 20)
        return Answer(sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:]))

    async def get(self, session: Session, target: str) -> Answer:
        return await self.ask(session, "GET", target)


@contextlib.asynccontextmanager
async def rest_site(directory: Path, *rules: dict[str, object]) -> AsyncIterator[RestSite]:
    """It has one event in its log, on the topic a/b."""
    policy = Policy(lambda: 0)
    policy.set_rules(read_rule(rule, str(n), 0) for n, rule in enumerate((ADMIN, *rules)))
    async with refusing(directory, access=policy) as broker:
        yield RestSite(broker, policy)


def run(
    directory: Path, script: Callable[[RestSite], Awaitable[None]], *rules: dict[str, object]
) -> None:
    async def main() -> None:
        async with rest_site(directory, *rules) as site:
            await script(site)

    uvloop.run(main())
