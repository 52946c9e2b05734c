"""The tables of the settings about who may do what: sign-in, rules and groups."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.access.policy.rights import Rule
from tocsin.access.quotas.rules import QuotaRule
from tocsin.access.wording import OPERATOR


@dataclass(frozen=True, slots=True)
class AuthSettings:
    """[auth]: whether clients must sign in, and for how long a token is good."""

    mode: str = "auto"  # open, required; auto is open while every listener is on loopback
    token_s: float = 12 * 3600.0  # how long a token is good, if whoever makes it says nothing
    token_s_max: float = 366 * 86_400.0
    tokens_max: int = 10_000
    rules_max: int = 10_000  # made over the API; of the file, as many as it has
    contact: str = OPERATOR  # who grants rights: refusals say so
    failed_sign_ins_max: int = 10  # in a minute, from one address; then it has to wait


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """[audit]: the record of who did what, in files of their own beside the log."""

    enabled: bool = True  # where clients sign in
    file_bytes_max: int = 16 << 20
    file_age_s: float = 7 * 86_400.0  # then the next file begins
    files_max: int = 64  # with more, the oldest goes
    flush_s: float = 1.0  # how often it is written


@dataclass(frozen=True, slots=True)
class WsSecuritySettings:
    """[ws_security]: SOAP messages that say by a Security header who sends them."""

    age_s: float = 300.0  # how old a message with a Timestamp may be
    skew_s: float = 60.0  # how far its sender's clock may be from ours
    seen_max: int = 200_000  # signatures and nonces of that time, of which none is taken twice
    sha1: bool = False  # take signatures by SHA-1 too, which can be forged with some effort
    tls_in_front: bool = False  # a proxy speaks TLS: passwords may come without it


@dataclass(frozen=True, slots=True)
class AccessRules:
    """[[access]], [groups] and [[quotas]]: who may do what, who belongs to which group, and how
    much each may have and send."""

    rules: tuple[Rule, ...] = ()
    groups: tuple[tuple[str, frozenset[str]], ...] = ()  # each with its members
    quotas: tuple[QuotaRule, ...] = ()  # how much each may have and send
    file: str = ""  # where they were read
