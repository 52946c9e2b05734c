"""The table of OpenID Connect issuers, and how one is read."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from tocsin.access.sign_in.issuer import Issuer
from tocsin.errors import BadSetting


@dataclass(frozen=True, slots=True)
class OpenIdSettings:
    """[openid]: an issuer of OpenID Connect whose access tokens sign somebody in. For several, a
    file has [[openid]] tables with these keys."""

    issuer: str = ""  # its URL, exactly as the `iss` of its tokens; empty for no issuer
    audience: str = ""  # that a token must be for; every issuer needs one
    name_claim: str = "sub"  # who it is: also preferred_username, or email if it is verified
    groups_claim: str = "groups"  # or a claim in a claim, as in realm_access.roles
    prefix: str = ""  # of names and groups, so that they are not those of others; has to be given
    ca_file: str = ""  # PEM file of authorities that the issuer may have besides the system's
    more: tuple[Issuer, ...] = ()  # those of [[openid]] tables

    def issuers(self) -> tuple[Issuer, ...]:
        """All issuers that there are. Raises BadSetting."""
        found = (*self._own(), *self.more)
        check_together(found)
        return found

    def _own(self) -> tuple[Issuer, ...]:
        if not self.issuer:
            if replace(self, more=()) != OpenIdSettings():
                raise BadSetting(
                    "openid has settings, and openid.issuer is not one of them",
                    remedy="Name the issuer, as in https://sso.example.org/realms/lab.",
                )
            return ()
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "more"}
        return (read_issuer(own),)


def read_issuer(table: Mapping[str, object], where: str = "") -> Issuer:
    """One issuer from its table. Raises BadSetting; `where` says where the table is."""
    known = [each.name for each in msgspec.structs.fields(Issuer)]
    for name in table:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            raise BadSetting(
                f"openid has {name!r}{where}, which is not a setting of an issuer",
                remedy=f"Did you mean {near[0]}?" if near else f"It has {', '.join(known)}.",
            )
    if "prefix" not in table and "issuer" in table:
        raise no_prefix(where)
    try:
        issuer = msgspec.convert(dict(table), Issuer)
    except msgspec.ValidationError as error:
        raise BadSetting(
            f"openid{where}: {error}", remedy="Each of its settings is a text."
        ) from None
    _check_url(issuer.issuer, where)
    for name in ("audience", "name_claim", "groups_claim"):
        if not getattr(issuer, name).strip():
            raise BadSetting(f"openid.{name} is empty{where}", remedy=_REMEDIES[name])
    if not issuer.prefix.isprintable() or issuer.prefix != issuer.prefix.lstrip():
        raise BadSetting(
            f"openid.prefix is {issuer.prefix!r}{where}",
            remedy="Use letters, as in prefix = 'lab:'.",
        )
    return issuer


def no_prefix(where: str) -> BadSetting:
    """Tokens, certificates and [groups] name principals and groups too, and a token that is made
    later may. So whether those of the issuer are the same is nothing that could be assumed."""
    return BadSetting(
        f"openid.prefix is not set{where}",
        remedy="Set prefix = 'lab:', so that no name and no group of the issuer is one of tokens, "
        "certificates or [groups]; or prefix = '' if they are meant to be the same.",
    )


def check_together(issuers: Sequence[Issuer]) -> None:
    """Raise BadSetting if two issuers could name the same principal."""
    for number, one in enumerate(issuers):
        for other in issuers[number + 1 :]:
            if one.issuer == other.issuer:
                raise BadSetting(
                    f"the OpenID Connect issuer {one.issuer} is configured twice",
                    remedy="Name each issuer once.",
                )
            if one.prefix.startswith(other.prefix) or other.prefix.startswith(one.prefix):
                raise BadSetting(
                    f"the issuers {one.issuer} and {other.issuer} have the prefixes "
                    f"{one.prefix!r} and {other.prefix!r}, so both could name the same principal",
                    remedy="Give each a prefix that is not the beginning of another's, "
                    "as in 'lab:' and 'guests:'.",
                )


def is_allowed_url(url: str, *, loopback: bool) -> bool:
    """True for an https address; with `loopback`, also for an http address of this machine."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    if not url.isascii() or not url.isprintable() or " " in url or not parts.hostname:
        return False
    if parts.username is not None or parts.password is not None or parts.fragment:
        return False
    return parts.scheme == "https" or (loopback and is_loopback_http(parts))


def is_loopback_http(parts: SplitResult) -> bool:
    """True for an http address that only this machine can answer."""
    host = parts.hostname or ""
    try:
        return parts.scheme == "http" and (host == "localhost" or ip_address(host).is_loopback)
    except ValueError:
        return False


def _check_url(url: str, where: str) -> None:
    if not is_allowed_url(url, loopback=True) or urlsplit(url).query or "?" in url:
        raise BadSetting(
            f"openid.issuer is {url[:200]!r}{where}, which cannot be the address of an issuer",
            remedy="Write it as the issuer does, as in https://sso.example.org/realms/lab. "
            "Only one on this machine may be without TLS.",
        )


_REMEDIES: Final = {
    "audience": "Name what the issuer writes into `aud` of tokens for this broker; "
    "without it a token for any other service would do.",
    "name_claim": "Name a claim such as sub.",
    "groups_claim": "Name a claim such as groups.",
}
