"""AccessService: makes and revokes tokens and rules, and explains decisions.

What it keeps is in the broker's log: a token or a rule is good, and a revocation holds, when the
answer says so, and after any crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from tocsin.access.decision import Action, Decision
from tocsin.access.policy.policy import Policy
from tocsin.access.policy.rights import EVERY_RIGHT, Rule, read_rule, write_rule
from tocsin.access.policy.tokens import (
    Token,
    count_makers,
    hash_of,
    is_secret,
    parse_token,
    token_text,
)
from tocsin.access.session import (
    ANONYMOUS,
    RESERVED,
    Credential,
    CredentialKind,
    Principal,
    Session,
    internal,
)
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Timer
from tocsin.errors import BadRight, NoSuchCredential, NotAllowed, NotSignedIn, QuotaReached
from tocsin.event.instant import LATEST_NS, NS_PER_S
from tocsin.event.topic import TopicPattern
from tocsin.services.access.descriptions import describe_rule, describe_token
from tocsin.services.access.kept import read_token, write_token
from tocsin.services.access.requests import CheckRequest, TokenRequest

TOKENS: Final = "access/token/"
RULES: Final = "access/rule/"
ADMINISTRATOR: Final = "admin"
RESOURCE: Final = "access"
FORGET_NS: Final = 30 * 86_400 * NS_PER_S  # an expired token is forgotten so long after its end

Record = Callable[[Session, str, str], None]
"""Called with who changed which token or rule, and with words for what was changed."""

_SERVICE = internal("access")
_LOOK_S_MAX: Final = 3_600.0
_MAKERS_MAX: Final = 8  # each of them is looked at when a token's rights are worked out


class AccessOptions(msgspec.Struct, frozen=True):
    """How many there may be, and how long a token is good."""

    required: bool
    token_ns: int = 12 * 3_600 * NS_PER_S
    token_ns_max: int = 366 * 86_400 * NS_PER_S
    tokens_max: int = 10_000
    rules_max: int = 10_000


class AccessService:
    """See the module."""

    def __init__(
        self,
        port: BrokerPort,
        policy: Policy,
        options: AccessOptions,
        *,
        new_secret: Callable[[], str],
        rights_changed: Callable[[], None],
        record: Record = lambda session, resource, words: None,
    ) -> None:
        """`record` is called with every change."""
        self.policy = policy
        self._port = port
        self._own = port.own(_SERVICE)
        self._runtime = port.runtime
        self._options = options
        self._new_secret = new_secret
        self._rights_changed = rights_changed
        self._record = record
        self._timer: Timer | None = None
        self._looked_ns = 0  # when rights were last looked at
        for value in self._own.kept(TOKENS).values():
            policy.set_token(read_token(value))
        kept = self._own.kept(RULES)
        rules = (_read_rule(key.removeprefix(RULES), value) for key, value in kept.items())
        policy.set_rules(rules)
        policy.changed.append(self._changed)
        self._own.on_clock_change(self._changed)  # what is over is another question then
        policy.ends_sooner.append(self._wait_for_next_end)
        self._changed()

    # Rights that end

    def _changed(self) -> None:
        """Somebody may do other things than before; and the next right ends at another time."""
        self._looked_ns = self.policy.now_ns()  # before: what ends meanwhile is the next to end
        self._rights_changed()
        self._wait_for_next_end()

    def _wait_for_next_end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        ends_ns = self.policy.next_end_ns(self._looked_ns)
        if ends_ns < LATEST_NS:
            wait_s = (ends_ns - self._runtime.now_ns()) / NS_PER_S
            # The time of day may be set meanwhile: look again before long.
            self._timer = self._runtime.call_later(
                min(max(wait_s, 0.001), _LOOK_S_MAX), self._changed
            )

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    # Tokens

    async def create_token(self, session: Session, asked: TokenRequest) -> tuple[Token, str]:
        """Returns the token and its text, which is shown once. Who may manage access makes one for
        anybody; else somebody makes one for himself, which gives nothing that he has not."""
        bounded = self._must_make_tokens(session, asked)
        self._must_be_on()
        now_ns = self._runtime.now_ns()
        expires_ns = asked.expires_ns or now_ns + self._options.token_ns
        if bounded and session.credential is not None and session.credential.expires_ns:
            expires_ns = min(expires_ns, session.credential.expires_ns)
        if not now_ns < expires_ns <= now_ns + self._options.token_ns_max:
            raise BadRight(
                "the token would have expired already, or would be good for too long",
                remedy=f"A token is good for at most {self._options.token_ns_max // 10**9} s.",
            )
        await self._make_room()
        secret = self._new_secret()
        token = Token(
            id=self._runtime.new_id(),
            principal=asked.principal,
            hash=hash_of(secret),
            created_ns=now_ns,
            expires_ns=expires_ns,
            groups=session.principal.groups if bounded else asked.groups,
            rights=asked.rights,
            is_bounded=bounded,
            granted_by=session.principal.name,
            made_with=session.owner.credential if bounded else "",
        )
        await self._keep_token(token)
        self._record(session, f"access/{token.key}", f"made, for {describe_token(token)}")
        return token, token_text(token.id, secret)

    def _must_make_tokens(self, session: Session, asked: TokenRequest) -> bool:
        """True if the token is bounded by what its principal has. Raises NotAllowed."""
        if self._port.may(session, Action.MANAGE, RESOURCE):
            return False
        is_own = session.is_signed_in and asked.principal == session.principal.name
        token = self._token_of(session)
        if not is_own or asked.groups or (token is not None and token.rights is not None):
            self._port.check(session, Action.MANAGE, RESOURCE)
        self.policy.validate(session)
        if count_makers(self.policy.tokens, session.owner.credential) >= _MAKERS_MAX:
            raise BadRight(
                f"the token is the last of {_MAKERS_MAX}, each made with the one before",
                remedy="Make it with an earlier one, or with what you signed in with at first.",
            )
        return True

    def _token_of(self, session: Session) -> Token | None:
        """The token that a session signed in with; None for another credential."""
        key = "" if session.credential is None else session.credential.key
        kind, _, token_id = key.partition("/")
        return self.policy.tokens.get(token_id) if kind == CredentialKind.TOKEN else None

    async def revoke_token(self, session: Session, token_id: str) -> None:
        """From now on it signs nobody in, and what was made with it gets nothing."""
        token = self._token(session, token_id)
        if token.revoked_ns is None:
            now_ns = self._runtime.now_ns()
            await self._keep_token(msgspec.structs.replace(token, revoked_ns=now_ns))
            self._record(session, f"access/{token.key}", f"revoked, of {token.principal}")
        elif not self._is_kept(token):
            await self._keep_token(token)  # who asked before has no answer, or had an error

    def _is_kept(self, token: Token) -> bool:
        """True if it is on disk as it is now."""
        key = f"{TOKENS}{token.id}"
        return self._own.kept(key).get(key) == write_token(token)

    def list_tokens(self, session: Session) -> list[Token]:
        """All tokens for who may manage access, else one's own: a token with rights of its own has
        only itself."""
        every = list(self.policy.tokens.values())
        if self._port.may(session, Action.MANAGE, RESOURCE):
            self._must_be_on()
            return every
        self.check_signed_in(session)
        own = self._token_of(session)
        if own is not None and own.rights is not None:  # it is given away
            return [own]
        return [each for each in every if each.principal == session.principal.name]

    def _token(self, session: Session, token_id: str) -> Token:
        """One that the session may see. What there is nobody else learns."""
        found = {each.id: each for each in self.list_tokens(session)}
        token = found.get(token_id)
        if token is None:
            raise NoSuchCredential(
                f"there is no token {token_id[:64]!r}",
                remedy="`tocsin access tokens` lists those there are.",
            )
        own = self._token_of(session)
        if own is not None and own.rights is not None and own.id != token_id:
            self._port.check(session, Action.MANAGE, RESOURCE)
        return token

    async def _keep_token(self, token: Token) -> None:
        if token.revoked_ns is not None:  # at once: if the disk fails now, it is so all the same
            self.policy.set_token(token)
        await self._port.keep_table(_SERVICE, {f"{TOKENS}{token.id}": write_token(token)})
        self.policy.set_token(token)

    async def _make_room(self) -> None:
        """Forget tokens that ended long ago and that nothing refers to, or raise QuotaReached."""
        tokens, now_ns = self.policy.tokens, self._runtime.now_ns()
        if len(tokens) < self._options.tokens_max:
            return
        used = self._credentials_in_use() | {each.made_with for each in tokens.values()}
        over = [
            each.id
            for each in tokens.values()
            if each.expires_ns is not None
            and each.expires_ns + FORGET_NS < now_ns
            and each.key not in used
        ]
        if not over:
            raise QuotaReached(
                f"there are {len(tokens)} tokens",
                remedy="Revoke some, let them expire, or raise auth.tokens_max.",
            )
        await self._port.keep_table(_SERVICE, {f"{TOKENS}{each}": None for each in over})
        for each in over:
            self.policy.drop_token(each)

    def _credentials_in_use(self) -> set[str]:
        views = self._port.views(_SERVICE)
        owners = (each.subscription.owner for each in views)
        return {owner.credential for owner in owners if owner is not None}

    async def administrator(self, known: str | None) -> str | None:
        """The text of a new administrator's token, unless `known` is one that is good. Those of
        before are revoked then: there is one."""
        parts = parse_token(known) if known else None
        token = self.policy.tokens.get(parts[0]) if parts else None
        if parts is not None and token is not None and token.revoked_ns is None:
            is_it = token.principal == ADMINISTRATOR and is_secret(token, parts[1])
            if is_it and token.rights == (EVERY_RIGHT,):
                return None
        now_ns = self._runtime.now_ns()
        for each in list(self.policy.tokens.values()):
            if each.principal != ADMINISTRATOR or each.granted_by:
                continue
            if each.revoked_ns is None:
                await self._keep_token(msgspec.structs.replace(each, revoked_ns=now_ns))
            elif not self._is_kept(each):
                await self._keep_token(each)  # the disk had no room when it was revoked
        secret = self._new_secret()
        new = Token(
            id=self._runtime.new_id(),
            principal=ADMINISTRATOR,
            hash=hash_of(secret),
            created_ns=now_ns,
            rights=(EVERY_RIGHT,),
        )
        await self._keep_token(new)
        self._record(_SERVICE, f"access/{new.key}", "made, for the administrator; others revoked")
        return token_text(new.id, secret)

    # Rules

    def list_rules(self, session: Session) -> list[Rule]:
        """All for who may manage or read access, else those that apply to the caller."""
        every = list(self.policy.rules.values())
        if any(self._port.may(session, each, RESOURCE) for each in (Action.READ, Action.MANAGE)):
            self._must_be_on()
            return every
        self.check_signed_in(session)
        who = session.principal
        return [each for each in every if self.policy.applies(each, who.name, who.groups)]

    async def add_rule(self, session: Session, written: dict[str, object]) -> Rule:
        self._port.check(session, Action.MANAGE, RESOURCE)
        self._must_be_on()
        own = [each for each in self.policy.rules.values() if each.granted_by]
        if len(own) >= self._options.rules_max:
            raise QuotaReached(
                f"there are {len(own)} rules", remedy="Remove some, or raise auth.rules_max."
            )
        name = session.principal.name
        rule = read_rule(written, self._runtime.new_id(), self._runtime.now_ns(), name)
        kept = msgspec.json.encode({"by": name, "rule": write_rule(rule)})
        await self._port.keep_table(_SERVICE, {f"{RULES}{rule.id}": kept})
        self.policy.set_rules([rule])
        self._record(session, f"access/rule/{rule.id}", f"added: {describe_rule(rule)}")
        return rule

    async def remove_rule(self, session: Session, rule_id: str) -> None:
        self._port.check(session, Action.MANAGE, RESOURCE)
        self._must_be_on()
        rule, key = self.policy.rules.get(rule_id), f"{RULES}{rule_id}"
        # One that is on its way off the disk, or could not be taken off it, is no more a rule; it
        # would be one again after a crash.
        if rule is None and key not in self._own.kept(key):
            raise NoSuchCredential(
                f"there is no rule {rule_id[:64]!r}",
                remedy="`tocsin access ls` lists those there are.",
            )
        if rule is not None and not rule.granted_by:
            raise BadRight(f"the rule {rule_id} is in the settings file", remedy="Remove it there.")
        self.policy.set_rules([], removed=[rule_id])
        await self._port.keep_table(_SERVICE, {key: None})
        words = "removed once more" if rule is None else f"removed: {describe_rule(rule)}"
        self._record(session, f"access/rule/{rule_id}", words)

    def reload(self, rules: Iterable[Rule], groups: Mapping[str, frozenset[str]]) -> None:
        """The rules and groups of the settings file are these now."""
        self.policy.set_groups(groups)
        gone = [each.id for each in self.policy.rules.values() if not each.granted_by]
        rules = list(rules)
        self.policy.set_rules(rules, removed=gone)
        self._record(_SERVICE, "access/rule/*", f"the settings have {len(rules)} rules")

    # What the policy says

    def whoami(self, session: Session) -> Session:
        """The caller, if its credential is good."""
        if self._options.required:
            if not session.is_signed_in:
                raise NotSignedIn(
                    "nobody is signed in",
                    remedy="Send a token (Authorization: Bearer) or a client certificate; "
                    "`tocsin login` keeps one for the commands.",
                )
            self.policy.validate(session)
        return session

    def check(self, session: Session, asked: CheckRequest) -> Decision:
        """What would be decided of somebody. About others only for who may manage access."""
        if asked.principal is None:
            self.check_signed_in(session)
            subject = session
        else:
            self._port.check(session, Action.MANAGE, RESOURCE)
            self._must_be_on()
            subject = self._subject(asked)
        if asked.resource:
            return self.policy.explain(subject, asked.action, asked.resource)
        TopicPattern.parse(asked.topic or "**")
        resource = asked.topic if asked.action is Action.PUBLISH else "events"
        return self.policy.explain(subject, asked.action, resource, asked.topic or "**")

    def _subject(self, asked: CheckRequest) -> Session:
        name = asked.principal or ANONYMOUS.name
        if name in RESERVED:
            return Session(ANONYMOUS, "check")
        credential = Credential(CredentialKind.CERTIFICATE, "certificate/check")
        if asked.token:
            token = self.policy.tokens.get(asked.token)
            if token is None or token.principal != name:
                raise NoSuchCredential(
                    f"{name[:64]} has no token {asked.token[:64]!r}",
                    remedy="`tocsin access tokens` lists those there are.",
                )
            credential = Credential(
                CredentialKind.TOKEN, token.key, token.expires_ns, token.entity_id
            )
        return Session(Principal(name, frozenset(asked.groups)), "check", "", credential)

    def check_signed_in(self, session: Session) -> None:
        """For what everybody may learn of himself."""
        if not session.is_signed_in:
            self._port.check(session, Action.READ, RESOURCE)
        self.policy.validate(session)

    def _must_be_on(self) -> None:
        if not self._options.required:
            raise NotAllowed(
                "auth.mode is open: everybody may do everything, and nobody signs in",
                remedy="Start the broker with auth.mode = required to grant rights.",
            )


def _read_rule(rule_id: str, value: bytes) -> Rule:
    kept = msgspec.json.decode(value)
    return read_rule(kept["rule"], rule_id, 0, kept["by"])
