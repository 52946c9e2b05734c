"""AccessControl: rules, tokens and sign-in of one process, where `auth.mode` asks for them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from tocsin.access.policy.policy import Policy
from tocsin.access.policy.tokens import SECRET_BYTES
from tocsin.access.quotas.quotas import Quotas
from tocsin.access.session import Session, internal
from tocsin.access.sign_in.attempts import Attempts
from tocsin.access.sign_in.entity_tokens import SECRET_BYTES as ENTITY_SECRET_BYTES
from tocsin.access.sign_in.entity_tokens import EntityTokens
from tocsin.access.sign_in.guarded_sign_in import GuardedSignIn
from tocsin.access.sign_in.sign_in import BearerTokens, SignIn
from tocsin.config import AccessRules, Settings, is_loopback
from tocsin.credentials.files import read_private
from tocsin.drivers.access.audit_files import FileOptions
from tocsin.drivers.access.audit_log import AuditLog
from tocsin.drivers.listeners.connection_quotas import ConnectionQuotas
from tocsin.drivers.logger import WriteLog
from tocsin.drivers.node import Node
from tocsin.errors import BadSetting, DataDirectoryUnusable, NotOpenToTheWorld
from tocsin.event.instant import NS_PER_S
from tocsin.services.access.service import AccessOptions, AccessService

ADMIN_TOKEN: Final = "admin.token"
OWNER_ONLY: Final = 0o600


class Issuers(BearerTokens, Protocol):
    """What signs in by tokens of other issuers, and reads their keys."""

    async def start(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class AccessControl:
    """What endpoints are given of it."""

    service: AccessService
    steady_ns: Callable[[], int]
    quotas: Quotas
    connection_quotas: ConnectionQuotas
    sign_in: GuardedSignIn | None  # None: everybody may do everything, no credential is looked at
    audit: AuditLog | None = None
    issuers: Issuers | None = None  # whose tokens sign somebody in, if any are configured
    entity_tokens: EntityTokens | None = None  # of those who prove to have a key

    async def start(self) -> None:
        """To be called before the listeners open."""
        if self.issuers is not None:
            await self.issuers.start()

    async def close(self) -> None:
        if self.issuers is not None:
            await self.issuers.close()

    def reload(self, access: AccessRules) -> None:
        """The rules, groups and quotas of the settings file are these now."""
        had_quotas = self.quotas.has_rules
        self.service.reload(access.rules, dict(access.groups))
        self.quotas.set_rules(access.quotas)  # also if only the groups are others
        if self.audit is not None and (access.quotas or had_quotas):
            words = f"the settings have {len(access.quotas)} quotas"
            self.audit.changed(internal("access"), "access/quotas", words)

    def sign_in_failed(self, session: Session, what: str, why: str) -> None:
        """Somebody showed a credential that is not valid, of a kind that is looked at elsewhere."""
        if self.sign_in is not None:
            self.sign_in.failures += 1
        if self.audit is not None:
            self.audit.sign_in_failed(session, what, why)

    def complaints(self) -> list[str]:
        return [] if self.audit is None else self.audit.complaints()


def quotas_of(settings: Settings, policy: Policy | None) -> Quotas:
    """Those of the settings, by the groups that the policy knows."""
    if policy is None:
        return Quotas(settings.access.quotas)
    return Quotas(settings.access.quotas, lambda who: policy.groups_of(who.name, who.groups))


def open_access_control(
    node: Node, policy: Policy | None, quotas: Quotas, settings: Settings
) -> AccessControl:
    """Without a policy, `auth.mode` is open: then the service says so to whoever asks."""
    auth, audit = settings.auth, open_audit(node, policy, quotas, settings)
    options = AccessOptions(
        required=policy is not None,
        token_ns=int(auth.token_s * NS_PER_S),
        token_ns_max=int(auth.token_s_max * NS_PER_S),
        tokens_max=auth.tokens_max,
        rules_max=auth.rules_max,
    )
    service = AccessService(
        node.port,
        policy or Policy(node.now_ns),
        options,
        new_secret=lambda: secrets.token_urlsafe(SECRET_BYTES),
        rights_changed=node.rights_changed,
        **({} if audit is None else {"record": audit.changed}),
    )
    issuers = settings.openid.issuers()  # also where nobody signs in: for what is wrong with them
    if policy is None:
        return AccessControl(
            service, node.steady_ns, quotas, ConnectionQuotas(quotas, is_open=True), None
        )
    entity_tokens = EntityTokens(secrets.token_bytes(ENTITY_SECRET_BYTES))
    others: list[BearerTokens] = [entity_tokens]
    openid: Issuers | None = None
    if issuers:
        # Imported only here: the library for keys takes a tenth of a second to load.
        from tocsin.drivers.access.openid import OpenIdSignIn

        openid = OpenIdSignIn(issuers, node.note)
        others.append(openid)
    sign_in = GuardedSignIn(
        lambda refused: SignIn(policy, others, refused),
        Attempts(auth.failed_sign_ins_max),
        node.steady_ns,
        failed=_nothing if audit is None else audit.sign_in_failed,
        waits=_nothing if audit is None else audit.quota_reached,
    )
    connections = ConnectionQuotas(quotas, is_open=False)
    return AccessControl(
        service, node.steady_ns, quotas, connections, sign_in, audit, openid, entity_tokens
    )


def open_audit(
    node: Node, policy: Policy | None, quotas: Quotas, settings: Settings
) -> AuditLog | None:
    """None where nobody signs in, or the settings want none."""
    options = settings.audit
    if policy is None or not options.enabled:
        return None
    files = FileOptions(options.file_bytes_max, options.file_age_s, options.files_max)
    directory = Path(settings.log.directory)
    audit = AuditLog(directory, node.note, files=files, flush_s=options.flush_s, now_ns=node.now_ns)
    policy.recorder = audit
    audit.report_published = policy.report_published
    quotas.on_reached = audit.quota_reached
    audit.start()
    return audit


def _nothing(session: Session, what: str, words: str) -> None:
    """There is no audit log."""


def check_exposure(settings: Settings, note: WriteLog) -> None:
    """Raise NotOpenToTheWorld where everybody who can reach a listener might do everything, unless
    `--open` says that this is meant; warn of what is seen on the way."""
    check_applied(settings, settings.access)
    beyond = [
        f"{address} ({setting})"
        for setting, address in settings.addresses().items()
        if not is_loopback(address)
    ]
    if not beyond:
        return
    if not settings.sign_in_required and not settings.http.open:
        raise NotOpenToTheWorld(
            f"{beyond[0]} can be reached from elsewhere, and auth.mode is open",
            remedy="Leave out auth.mode, so that clients must sign in, or add --open if everybody "
            "who can reach it may do everything.",
        )
    if not settings.sign_in_required:
        note("warning", "everybody who can reach this broker may do everything", listens=beyond)
    elif not settings.http.tls_certificate:
        note(
            "warning",
            "tokens and events can be read on the way: there is no TLS",
            listens=beyond,
            remedy="Give --tls-cert and --tls-key, or keep a proxy with TLS in front.",
        )


def check_applied(settings: Settings, access: AccessRules) -> None:
    """Raise BadSetting for rules that nobody is asked about, though somebody believes so."""
    if access.rules and settings.auth.mode == "auto" and not settings.sign_in_required:
        raise BadSetting(
            "there are [[access]] rules, and auth.mode is open, so they would not be applied",
            remedy='Say which: [auth] with mode = "required", or mode = "open".',
        )


async def ensure_administrator(control: AccessControl, directory: str, note: WriteLog) -> Path:
    """Where the administrator's token is. It is made at the first start, and again if its file is
    gone or holds another: whoever may write there has the log anyway."""
    path = Path(directory) / ADMIN_TOKEN
    text = await control.service.administrator(read_secret(path) if path.exists() else None)
    if text is not None:
        write_secret(path, text)
        note("info", "a new administrator's token was written", file=str(path))
    return path


def read_secret(path: Path) -> str:
    """The text of a file that nobody else may use. Raises BadCredential."""
    return read_private(str(path), "the administrator's token")[0].strip()


def write_secret(path: Path, text: str) -> None:
    """Write the file whole or not at all; nobody but its owner can ever read it."""
    scratch = path.with_name(f".{path.name}.new")
    try:
        scratch.unlink(missing_ok=True)
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        scratch.rename(path)
    except OSError as error:
        raise DataDirectoryUnusable(
            f"cannot write {path}: {error.strerror or error}",
            remedy="Make the data directory writable for the broker.",
        ) from None
