"""What a start must find of rules and tokens: what was acknowledged, and what was asked since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from tocsin.sim.checks.access import AccessModel
from tocsin.sim.checks.grants import Grant, RuleRecord, TokenRecord
from tocsin.sim.rights import Right, read_right
from tocsin.sim.world import Violation, World

RULES: Final = "access/rule/"
TOKENS: Final = "access/token/"


@dataclass(frozen=True, slots=True)
class _FoundRule:
    right: Right
    principal: str
    group: str


@dataclass(frozen=True, slots=True)
class _FoundToken:
    principal: str
    groups: frozenset[str]
    rights: tuple[Right, ...] | None
    expires_ns: int | None
    is_bounded: bool
    made_with: str


class KeptAccess:
    """Compares what is on disk with the model, and settles what a crash left open."""

    def __init__(self, world: World, model: AccessModel) -> None:
        self._world = world
        self._model = model
        # Asked for and not answered: after a crash such a one may be there.
        self.rules_asked: list[RuleRecord] = []
        self.tokens_asked: list[TokenRecord] = []

    def recovered(self, state: dict[str, bytes]) -> None:
        """A process starts with this state of services."""
        self._rules(_under(state, RULES))
        self._tokens(_under(state, TOKENS))
        self.rules_asked.clear()
        self.tokens_asked.clear()

    def _rules(self, found: dict[str, Any]) -> None:
        model = self._model
        for rule in list(model.rules.values()):
            if rule.is_of_settings:
                continue
            if rule.id in found:
                self._is_there(rule, "rule")
            else:
                self._is_gone(rule, "rule")
        for id, kept in found.items():
            written = kept["rule"]
            there = _FoundRule(
                read_right(written), written.get("principal", ""), written.get("group", "")
            )
            known = model.rules.get(id)
            if known is None:
                asked = [each for each in self.rules_asked if _rule(each) == there]
                if not asked:
                    raise Violation(f"rule {id} is kept, and nobody asked for it")
                self._world.seen["access: rule found after a crash"] += 1
                model.add_rule(
                    RuleRecord(
                        id=id, right=there.right, principal=there.principal, group=there.group
                    )
                )
            elif _rule(known) != there:
                raise Violation(f"rule {id} is kept as {there}, and was {_rule(known)}")

    def _tokens(self, found: dict[str, Any]) -> None:
        model = self._model
        for token in list(model.tokens.values()):
            kept = found.get(token.id)
            if kept is not None and kept.get("revoked_ns") is None:
                self._is_there(token, "token")
            elif kept is not None:
                self._is_gone(token, "token")
            else:
                raise Violation(f"token {token.id} is lost")
        for id, kept in found.items():
            rights = kept.get("rights")
            there = _FoundToken(
                kept["principal"],
                frozenset(kept.get("groups", ())),
                None if rights is None else tuple(map(read_right, rights)),
                kept.get("expires_ns"),
                kept.get("is_bounded", False),
                kept.get("made_with", ""),
            )
            known = model.tokens.get(id)
            if known is None:
                self._adopt(id, there)
            elif _token(known) != there:
                raise Violation(f"token {id} is kept as {there}, and was {_token(known)}")

    def _adopt(self, id: str, there: _FoundToken) -> None:
        """It was made, and its maker never had an answer: nobody knows its secret."""
        if not any(
            (each.principal, each.rights, each.is_bounded)
            == (there.principal, there.rights, there.is_bounded)
            for each in self.tokens_asked
        ):
            raise Violation(f"token {id} is kept, and nobody asked for it")
        self._world.seen["access: token found after a crash"] += 1
        self._model.add_token(
            TokenRecord(
                id=id,
                principal=there.principal,
                groups=there.groups,
                rights=there.rights,
                expires_ns=there.expires_ns,
                is_bounded=there.is_bounded,
                made_with=there.made_with,
            )
        )

    def _is_there(self, grant: Grant, what: str) -> None:
        if grant.over_ns is not None:
            raise Violation(f"{what} {grant.id} was acknowledged to be over, and is good again")
        if grant.may_be_over:
            self._world.seen[f"access: the end of a {what} was lost with a crash"] += 1
        grant.may_be_over = False

    def _is_gone(self, grant: Grant, what: str) -> None:
        if not grant.may_be_over:
            raise Violation(f"{what} {grant.id} is lost")
        if grant.over_ns is None:
            self._world.seen[f"access: the end of a {what} outlived a crash"] += 1
            grant.over_ns = self._world.now_ns
        else:
            self._world.seen[f"access: a {what} stays over"] += 1


def _under(state: dict[str, bytes], prefix: str) -> dict[str, Any]:
    return {
        key.removeprefix(prefix): msgspec.json.decode(value)
        for key, value in state.items()
        if key.startswith(prefix)
    }


def _rule(rule: RuleRecord) -> _FoundRule:
    return _FoundRule(rule.right, rule.principal, rule.group)


def _token(token: TokenRecord) -> _FoundToken:
    return _FoundToken(
        token.principal,
        token.groups,
        token.rights,
        token.expires_ns,
        token.is_bounded,
        token.made_with,
    )
