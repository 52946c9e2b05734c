"""Administrators: they make and revoke tokens, and add and remove rules; and some who may not do
that try to."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from tocsin.access.policy.rights import Rule
from tocsin.access.policy.tokens import Token
from tocsin.access.session import CredentialKind, Session
from tocsin.errors import NoSuchCredential, NotAllowed
from tocsin.event.instant import NS_PER_MS, rfc3339
from tocsin.services.access.requests import read_token_request
from tocsin.services.access.service import ADMINISTRATOR
from tocsin.sim.access_plan import GROUPS, NAMES
from tocsin.sim.checks.grants import Grant, RuleRecord, TokenRecord
from tocsin.sim.clients.ends import Ends
from tocsin.sim.machine import Machine
from tocsin.sim.rights import (
    EVERY_ACTION,
    EVERYTHING,
    LINKS,
    MANAGE,
    Right,
    draw_actions,
    draw_right,
)
from tocsin.sim.services import Services
from tocsin.sim.site_access import LONG_NS, SHORT_MS, SiteAccess
from tocsin.sim.world import Violation

FIRST_MS: Final = 15
CHANGES_MS: Final = (5, 600)
AGAIN_MS: Final = 40


class Administrators:
    """Of one broker."""

    def __init__(self, machine: Machine, access: SiteAccess) -> None:
        self._machine = machine
        self._access = access
        self._world = machine.world
        self._random = access.random
        self._ends = Ends(machine, access)
        self._pending = 0
        self._to_grant: set[str] = set()  # in the end: who has no right to everything yet
        self._to_give: set[str] = set()  # and who has no token for it
        self._has_wound_up = False

    @property
    def is_done(self) -> bool:
        return self._pending == 0

    def start(self) -> None:
        for name in NAMES:
            if name not in self._access.plan.by_openid:
                self._later(0, FIRST_MS, partial(self._make_until_made, name))
        for _ in range(self._access.plan.changes):
            change = self._random.choice(
                (
                    self._make_token,
                    self._make_token,
                    self._make_own_token,
                    self._revoke_token,
                    self._revoke_token,
                    self._revoke_other,
                    self._add_rule,
                    self._add_rule,
                    self._remove_rule,
                    self._remove_rule,
                    self._try_what_one_may_not,
                )
            )
            self._later(*CHANGES_MS, change)

    def _later(self, low_ms: float, high_ms: float, action: Callable[[], None]) -> None:
        self._pending += 1

        def happen() -> None:
            self._pending -= 1
            action()

        self._world.after_ms(self._random.uniform(low_ms, high_ms), happen)

    def _call(
        self,
        work: Callable[[Services, Session], Coroutine[Any, Any, Any]],
        answered: Callable[[object], None],
        who: str = ADMINISTRATOR,
    ) -> None:
        if self._machine.process is None or self._access.process is None:
            return
        session = self._access.session(who, "http")
        self._machine.call(lambda services: work(services, session), answered)

    # Tokens

    def _make_until_made(self, name: str) -> None:
        if not self._access.wallets[name] and not self._world.calm:
            self._make(name, None, self._draw_end())
            self._later(AGAIN_MS, 2 * AGAIN_MS, lambda: self._make_until_made(name))

    def _draw_end(self) -> int | None:
        """None: when the broker says."""
        if self._random.random() < 0.5:
            return None
        return self._now_ns() + int(self._random.uniform(*SHORT_MS) * NS_PER_MS)

    def _now_ns(self) -> int:
        return self._access.model.now_ns() or self._world.now_ns

    def _draw_rights(self) -> tuple[Right, ...]:
        expires = self._draw_end() if self._random.random() < 0.3 else None
        return tuple(
            draw_right(self._random, draw_actions(self._random), expires)
            for _ in range(self._random.randint(1, 2))
        )

    def _make_token(self) -> None:
        rights = self._draw_rights() if self._random.random() < 0.5 else None
        self._make(self._random.choice(NAMES), rights, self._draw_end())

    def _make_own_token(self) -> None:
        """Somebody makes one for himself, which gives nothing that he has not."""
        name = self._random.choice(NAMES)
        self._make(name, self._draw_rights(), self._draw_end(), by=name)

    def _make(
        self,
        name: str,
        rights: tuple[Right, ...] | None,
        expires_ns: int | None,
        by: str = ADMINISTRATOR,
        done: Callable[[str], None] | None = None,
    ) -> None:
        asked = TokenRecord(
            id="", principal=name, rights=rights, expires_ns=expires_ns, is_bounded=by == name
        )
        written: dict[str, Any] = {"principal": name}
        if rights is not None:
            written["rights"] = [right.written() for right in rights]
        if expires_ns is not None:
            written["expires"] = rfc3339(expires_ns, 9)

        async def make(services: Services, session: Session) -> tuple[Token, str]:
            assert services.access is not None
            request = read_token_request(written, services.node.runtime.now_ns())
            self._access.kept.tokens_asked.append(asked)
            return await services.access.service.create_token(session, request)

        def answered(result: object) -> None:
            if not isinstance(result, tuple):
                self._world.seen[f"access: no token: {type(result).__name__}"] += 1
                return
            token, text = result
            self._world.trace(f"token {token.id} of {name} until {token.expires_ns}")
            self._world.seen["access: token made"] += 1
            self._access.model.add_token(
                TokenRecord(
                    id=token.id,
                    principal=name,
                    groups=token.groups,
                    rights=rights,
                    expires_ns=token.expires_ns,
                    is_bounded=by == name,
                    made_with=token.made_with,
                )
            )
            self._access.wallets[name].append(text)
            self._ends.look(name, rights or (), token.expires_ns)
            if done is not None:
                done(text)

        self._call(make, answered, by)

    def _revoke_token(self) -> None:
        live = [
            token
            for token in self._access.model.tokens.values()
            if token.over_ns is None and token.principal != ADMINISTRATOR
        ]
        if not live:
            return
        token = self._random.choice(live)
        by = self._random.choice((ADMINISTRATOR, ADMINISTRATOR, token.principal))

        async def revoke(services: Services, session: Session) -> None:
            assert services.access is not None
            self._end(token, f"token {token.id} of {token.principal}")
            await services.access.service.revoke_token(session, token.id)

        self._twice(revoke, lambda result: self._ended(token, "token", result, by), by)

    def _revoke_other(self) -> None:
        """Another issuer's token, or a broker's certificate, is on a list of revoked ones."""
        process, model = self._access.process, self._access.model
        if process is None:
            return
        keys = {
            watched.holder.credential
            for watched in model.watched
            if watched.holder is not None and watched.holder.credential.startswith("openid/")
        }
        keys |= {holder.credential for holder in model.neighbours.values()} - model.revoked.keys()
        if keys:
            key = self._random.choice(sorted(keys))
            kind = key.partition("/")[0]
            what = "another issuer's token" if kind == CredentialKind.OPENID else kind
            self._world.trace(f"{key} is revoked")
            self._world.seen[f"access: {what} revoked"] += 1
            if self._access.certificates is not None:
                self._access.certificates.revoked.add(key)
            process.policy.set_revoked({*model.revoked, key})
            model.revoke_others({*model.revoked, key})

    # Rules

    def _add_rule(self) -> None:
        random = self._random
        expires = self._draw_end() if random.random() < 0.4 else None
        right = draw_right(random, draw_actions(random), expires)
        if random.random() < 0.3:
            self._add(right, group=random.choice(GROUPS))
        else:
            neighbours = self._access.plan.neighbours
            principal = random.choice((*NAMES, "anonymous", *neighbours))
            if principal in neighbours:
                right = self._of_neighbour(right)
            self._add(right, principal=principal)

    def _of_neighbour(self, right: Right) -> Right:
        """What another broker needs to be linked, or what comes over the link then."""
        random, ends_ns = self._random, right.expires_ns
        if random.random() < 0.4:
            return Right(frozenset((MANAGE,)), None, LINKS, ends_ns)
        if random.random() < 0.4:
            return Right(EVERY_ACTION, EVERYTHING, expires_ns=ends_ns)
        return right

    def _add(
        self,
        right: Right,
        principal: str = "",
        group: str = "",
        done: Callable[[], None] | None = None,
    ) -> None:
        asked = RuleRecord(id="", right=right, principal=principal, group=group)
        whose = {"group": group} if group else {"principal": principal}

        async def add(services: Services, session: Session) -> Rule:
            assert services.access is not None
            self._access.kept.rules_asked.append(asked)
            return await services.access.service.add_rule(session, {**whose, **right.written()})

        def answered(result: object) -> None:
            if not isinstance(result, Rule):
                self._world.seen[f"access: no rule: {type(result).__name__}"] += 1
                return
            self._world.trace(f"rule {result.id} for {principal or group}: {right.written()}")
            self._world.seen["access: rule added"] += 1
            self._access.model.add_rule(
                RuleRecord(id=result.id, right=right, principal=principal, group=group)
            )
            if principal in NAMES:
                self._ends.look(principal, (right,), None)
            if done is not None:
                done()

        self._call(add, answered)

    def _remove_rule(self) -> None:
        live = [
            rule
            for rule in self._access.model.rules.values()
            if rule.over_ns is None and not rule.is_of_settings
        ]
        if not live:
            return
        rule = self._random.choice(live)

        async def remove(services: Services, session: Session) -> None:
            assert services.access is not None
            self._end(rule, f"rule {rule.id}")
            await services.access.service.remove_rule(session, rule.id)

        self._twice(remove, lambda result: self._ended(rule, "rule", result, ADMINISTRATOR))

    # Ends

    def _twice(
        self,
        work: Callable[[Services, Session], Coroutine[Any, Any, Any]],
        answered: Callable[[object], None],
        who: str = ADMINISTRATOR,
    ) -> None:
        """Some ask again before they have an answer, and some when they have one that they do not
        like."""

        def first(result: object) -> None:
            answered(result)
            if result is not None and self._random.random() < 0.7:
                self._later(1, AGAIN_MS, lambda: self._call(work, answered, who))

        self._call(work, first, who)
        if self._random.random() < 0.3:
            self._later(0, 10, lambda: self._call(work, answered, who))

    def _end(self, grant: Grant, what: str) -> None:
        self._world.trace(f"{what} shall be over")
        self._access.model.end(grant)

    def _ended(self, grant: Grant, what: str, result: object, by: str) -> None:
        self._world.trace(f"the end of {what} {grant.id} is answered {type(result).__name__}")
        if result is None:
            self._world.seen[f"access: {what} is over"] += 1
            self._access.model.is_over(grant)
        elif isinstance(result, NoSuchCredential) and what == "rule":
            self._access.model.is_over(grant)  # as somebody must take it who is told so
        elif isinstance(result, NoSuchCredential) and by == ADMINISTRATOR:
            raise Violation(f"there is no {what} {grant.id}")
        else:
            self._world.seen[f"access: {what} not ended: {type(result).__name__}"] += 1

    def _try_what_one_may_not(self) -> None:
        """Somebody who may not manage access gives himself every right."""
        name = self._random.choice(NAMES)

        def answered(result: object) -> None:
            if isinstance(result, NotAllowed):
                self._world.seen["access: somebody tried to grant himself rights"] += 1
            elif not isinstance(result, Exception):
                raise Violation(f"{name} has granted himself every right")

        async def add(services: Services, session: Session) -> Rule:
            assert services.access is not None
            written = Right(EVERY_ACTION, EVERYTHING).written()
            return await services.access.service.add_rule(session, {"principal": name, **written})

        self._call(add, answered, name)

    # In the end

    def wind_up(self) -> None:
        """Everybody may do everything from now on, so that what is still to be done can be."""
        process = self._access.process
        if not self._has_wound_up:
            self._has_wound_up = True
            self._to_grant = {*NAMES, *self._access.plan.neighbours}
            self._to_give = set(NAMES)
        for name in sorted(self._to_grant):
            self._add(
                Right(EVERY_ACTION, EVERYTHING),
                name,
                done=partial(self._to_grant.discard, name),
            )
        for name in sorted(self._to_give):
            self._make(
                name,
                None,
                self._now_ns() + LONG_NS,
                done=partial(self._given, name),
            )
        if self._to_grant or self._to_give or process is None:
            self._world.after_ms(2 * AGAIN_MS, self.wind_up)

    def _given(self, name: str, text: str) -> None:
        self._to_give.discard(name)
        self._access.wallets[name][:] = [text]

    def what_is_owed(self) -> str | None:
        if not self._has_wound_up or self._to_grant or self._to_give:
            return f"{sorted(self._to_grant | self._to_give)} have not got their rights"
        return None
