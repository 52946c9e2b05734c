"""SiteAccess: rules, tokens and sign-in of one simulated broker, over all its processes.

The policy and the service of access that ship run in each process. What clients know, their
credentials, is here too: as in their files.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

from tocsin.access.policy.policy import Policy
from tocsin.access.policy.rights import read_rule
from tocsin.access.session import Credential, CredentialKind, Principal, Session, anonymous
from tocsin.access.sign_in.sign_in import SignedIn, SignIn
from tocsin.errors import NotSignedIn, TocsinError
from tocsin.event.instant import NS_PER_MS
from tocsin.services.access.service import ADMINISTRATOR, AccessOptions, AccessService
from tocsin.sim.access_plan import CHAIN, GROUPS, NAMES, AccessPlan
from tocsin.sim.certificates import Certificates
from tocsin.sim.checks.access import AccessModel
from tocsin.sim.checks.checked_access import CheckedAccess
from tocsin.sim.checks.grants import Holder, RuleRecord, TokenRecord
from tocsin.sim.checks.kept_access import KeptAccess
from tocsin.sim.checks.link_access import LinkAccessCheck
from tocsin.sim.checks.log import LogCheck
from tocsin.sim.node import SimNode
from tocsin.sim.rights import EVERY_ACTION, EVERYTHING, Right
from tocsin.sim.world import Violation, World

RETRY_S: Final = 0.02
REPLAYS: Final = 0.5
OTHERS: Final = "jwt."
LONG_NS: Final = 300 * 86_400 * 10**9
SHORT_MS: Final = (30, 1_500)


class OneProcess(Protocol):
    """A process, as far as this needs to know it: the broker is its first node."""

    nodes: list[SimNode]


class _Issuer:
    """Another issuer, whose tokens say in plain text who somebody is."""

    kind = CredentialKind.OPENID

    def looks_like(self, text: str) -> bool:
        return text.startswith(OTHERS)

    def sign_in(self, text: str, now_ns: int) -> SignedIn:
        _, name, group, number, ends = text.split(".")
        expires_ns = int(ends) or None
        if expires_ns is not None and expires_ns <= now_ns:
            raise NotSignedIn("the token has expired", remedy="Get another.")
        groups = frozenset((group,)) if group else frozenset[str]()
        credential = Credential(CredentialKind.OPENID, f"openid/{number}", expires_ns)
        return Principal(name, groups), credential


@dataclass(frozen=True, slots=True)
class ProcessAccess:
    """In one process."""

    policy: Policy
    service: AccessService
    sign_in: SignIn


class SiteAccess:
    """See the module."""

    def __init__(self, world: World, plan: AccessPlan, host: str, log: LogCheck) -> None:
        self.plan = plan
        self.random = Random(f"access {world.seed} {host}")
        self.model = AccessModel(world, log, plan.members, plan.neighbours)
        self.kept = KeptAccess(world, self.model)
        self.process: ProcessAccess | None = None
        self.certificates: Certificates | None = None  # of linked brokers
        self.links = LinkAccessCheck(world, host, self.model) if plan.neighbours else None
        self.wallets: dict[str, list[str]] = {name: [] for name in (*NAMES, ADMINISTRATOR)}
        self._world = world
        self._host = host
        self._issued = 0
        for rule in plan.rules:
            self.model.add_rule(
                RuleRecord(
                    id=rule.id,
                    right=rule.right,
                    principal=rule.principal,
                    group=rule.group,
                    is_of_settings=True,
                )
            )

    # In a process

    def new_policy(self, process: OneProcess) -> CheckedAccess:
        """A process begins: before there is anything that could be asked."""

        def now_ns() -> int:
            return process.nodes[0].runtime.now_ns() if process.nodes else 0

        policy = Policy(now_ns, groups=self.plan.members)
        rules = []
        for each in self.plan.rules:
            whose = {"group": each.group} if each.group else {"principal": each.principal}
            rules.append(read_rule({**whose, **each.right.written()}, each.id, 0))
        policy.set_rules(rules)
        policy.set_revoked(self.model.revoked)
        self.model.now_ns = now_ns
        self.model.end_window()
        if self.links is not None:
            self.links.begin()
        self._policy = policy
        return CheckedAccess(policy, self.model, self._world)

    def begin(self, process: OneProcess, node: SimNode) -> None:
        """The broker is there."""
        policy = self._policy
        service = AccessService(
            node.port,
            policy,
            AccessOptions(required=True),
            new_secret=self._new_secret,
            rights_changed=node.rights_changed,
        )
        self.process = ProcessAccess(policy, service, SignIn(policy, [_Issuer()]))
        known = {each.id for each in self.model.rules.values() if each.over_ns is None}
        if policy.rules.keys() != known:
            raise Violation(f"a broker has the rules {sorted(policy.rules)}, not {sorted(known)}")

    def started(self, process: OneProcess) -> None:
        process.nodes[0].runtime.spawn(self._administrator(process))

    async def _administrator(self, process: OneProcess) -> None:
        """As at every start: the administrator's token, which is in a file."""
        access, runtime = self.process, process.nodes[0].runtime
        assert access is not None
        wallet = self.wallets[ADMINISTRATOR]
        asked = TokenRecord(
            id="", principal=ADMINISTRATOR, rights=(Right(EVERY_ACTION, EVERYTHING),)
        )
        while not runtime.is_stopping:
            for each in self.model.tokens.values():
                if each.principal == ADMINISTRATOR and not wallet:
                    self.model.end(each)
            self.kept.tokens_asked.append(asked)
            try:
                text = await access.service.administrator(wallet[-1] if wallet else None)
            except TocsinError:
                await runtime.sleep(RETRY_S)
                continue
            if text is not None:
                for each in self.model.tokens.values():
                    if each.principal == ADMINISTRATOR and each.may_be_over:
                        self.model.is_over(each)
                id = text.split("_")[1]
                self.model.add_token(
                    TokenRecord(id=id, principal=ADMINISTRATOR, rights=asked.rights)
                )
                wallet[:] = [text]
            return

    def _new_secret(self) -> str:
        return base64.urlsafe_b64encode(self.random.randbytes(32)).decode().rstrip("=")

    # What clients do

    def principal_of(self, who: str) -> str:
        """Whose credentials a client has."""
        return Random(f"principal {self._world.seed} {self._host} {who}").choice(NAMES)

    def replays(self, who: str) -> bool:
        """Whether somebody who follows the log begins with all that it has."""
        return Random(f"replay {self._world.seed} {self._host} {who}").random() < REPLAYS

    def text_of(self, principal: str) -> str | None:
        """A credential that somebody has, if any."""
        if principal == CHAIN:
            return f"{OTHERS}{CHAIN}..{CHAIN}.0"
        wallet = self.wallets[principal]
        if not wallet and principal in self.plan.by_openid:
            wallet.append(self._issue(principal))
        return self.random.choice(wallet) if wallet else None

    def _issue(self, principal: str) -> str:
        """Another issuer gives somebody a token."""
        self._issued += 1
        group = self.random.choice(("", *GROUPS))
        ends_ns = 0
        if not self._world.calm and self.random.random() < 0.7:
            now_ns = self.model.now_ns() or self._world.now_ns
            ends_ns = now_ns + int(self.random.uniform(*SHORT_MS) * NS_PER_MS)
        return f"{OTHERS}{principal}.{group}.{self._issued}.{ends_ns}"

    def end_of(self, text: str) -> int | None:
        """When a credential ends, if its holder knows that."""
        if text.startswith(OTHERS):
            return int(text.rpartition(".")[2]) or None
        token = self.model.tokens.get(text.split("_")[1])
        return None if token is None else token.expires_ns

    def header(self, principal: str) -> str | None:
        text = self.text_of(principal)
        return None if text is None else f"Bearer {text}"

    def link_session(self, host: str, peer: str) -> Session | None:
        """Of another broker, by the certificate that it shows now; None if that is not valid."""
        assert self.certificates is not None
        assert self.process is not None
        shown = self.certificates.shown_by(host)
        session = Session(Principal(host), "link", peer, shown)
        holder = Holder(host, frozenset(), shown.key, shown.expires_ns)
        self.model.tick()
        try:
            self.process.policy.validate(session)
        except NotSignedIn:
            if self.model.surely(holder).is_valid:
                raise Violation(f"{shown.key} of {host} is good, and does not sign in") from None
            return None
        if not self.model.maybe(holder, exactly=True).is_valid:
            raise Violation(f"{shown.key} of {host} signs in, and is over")
        self.model.neighbours[host] = holder
        return session

    def session(self, principal: str, endpoint: str, peer: str = "") -> Session:
        """As a listener gives it to a request of this principal."""
        found = self.session_of(self.header(principal), endpoint, peer)
        return anonymous(endpoint, peer) if found is None else found

    def session_of(self, header: str | None, endpoint: str, peer: str) -> Session | None:
        """By an Authorization header; None if the credential is not valid."""
        if header is None or self.process is None:
            return anonymous(endpoint, peer)
        text = header.removeprefix("Bearer ")
        self.model.tick()
        try:
            principal, credential = self.process.sign_in.by_header(header.encode())
        except NotSignedIn:
            self._world.seen["access: sign-in refused"] += 1
            self._check_refused(text)
            for wallet in self.wallets.values():
                if text in wallet:
                    wallet.remove(text)
            return None
        self._check_signed_in(credential)
        return Session(principal, endpoint, peer, credential)

    def _check_refused(self, text: str) -> None:
        parts = text.split("_")
        token = self.model.tokens.get(parts[1]) if len(parts) > 2 else None
        if self.model.has_makers(token, lambda grant: not grant.may_be_over):
            assert token is not None
            ends_ns = token.expires_ns
            if ends_ns is None or self.model.now_ns() < ends_ns:
                raise Violation(f"token {token.id} is good, and does not sign in")

    def _check_signed_in(self, credential: Credential) -> None:
        token = self.model.tokens.get(credential.key.removeprefix("token/"))
        if credential.kind is not CredentialKind.TOKEN:
            return
        if token is None or not self.model.has_makers(token, lambda each: each.over_ns is None):
            raise Violation(f"{credential.key} signs in, and was revoked")
        if token.expires_ns is not None and token.expires_ns <= self.model.now_ns():
            raise Violation(f"{credential.key} signs in, and has expired")

    def administrator(self, endpoint: str) -> Session:
        return self.session(ADMINISTRATOR, endpoint)

    def owner_session(self, owner: Holder | None, endpoint: str) -> Session:
        """Of whoever owns something; of the administrator if nobody who signed in does."""
        name = ADMINISTRATOR if owner is None or not owner.credential else owner.name
        return self.session(name, endpoint)
