"""Settings: parsed once, frozen, handed down. Flags first, then TOCSIN_*, then a file, then these.

Each class of `tables` is a table of `tocsin.toml`; a key of a table is TOCSIN_TABLE__KEY in the
environment. Every value remembers where it came from, so that `tocsin config show` can say.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from tocsin.access.policy.rights import Rule, read_rule
from tocsin.access.quotas.rules import QuotaRule
from tocsin.access.sign_in.issuer import Issuer
from tocsin.config.auth_tables import AccessRules
from tocsin.config.entries import ENTRY_CHECKS
from tocsin.config.openid import no_prefix, read_issuer
from tocsin.config.quota_tables import read_quota
from tocsin.config.tables import Settings
from tocsin.errors import BadRight, BadSetting

PREFIX = "TOCSIN_"
FILE_NAME = "tocsin.toml"
# Read by clients, and by whoever looks for the file: no settings of the broker.
NOT_SETTINGS = frozenset(
    {
        "TOCSIN_BROKER",
        "TOCSIN_BROKER_WAIT_S",
        "TOCSIN_CA_FILE",
        "TOCSIN_CONFIG",
        "TOCSIN_CLIENT_CERT",
        "TOCSIN_CLIENT_KEY",
        "TOCSIN_INSECURE_TOKEN",
        "TOCSIN_TOKEN",
        "TOCSIN_TOKEN_FILE",
    }
)


Origins = dict[str, str]
"""Where each value came from, by its dotted name: DEFAULT, a file, a variable or a flag."""

DEFAULT = "default"

CHOICES = {
    "auth.mode": ("auto", "open", "required"),
    "certificates.client_certificates": ("optional", "required"),
    "log.synchronous": ("FULL", "NORMAL"),
    "delivery.private": ("yes", "no", "auto"),
}
RULE_TABLES = ("access", "groups", "quotas")
"""Tables of rules and no settings: only a file has them."""

FILE_ONLY = frozenset({"openid.more"})
"""What a file has in [[tables]], and nothing else can set."""

SEPARATORS = {  # in the environment, of lists whose entries may have commas
    "overlay.peers": ";",
    "overlay.advertises": ";",
}


def keys() -> dict[str, Any]:
    """Every setting by its dotted name, with its default."""
    found: dict[str, Any] = {}
    defaults = Settings()
    for table in fields(Settings):
        if table.name in RULE_TABLES:
            continue
        group = getattr(defaults, table.name)
        for key in fields(group):
            found[f"{table.name}.{key.name}"] = getattr(group, key.name)
    return {name: value for name, value in found.items() if name not in FILE_ONLY}


def find_file(named: str | None, environment: Mapping[str, str]) -> Path | None:
    """The file to read: the one named, or the first that exists where people put it."""
    wanted = named or environment.get("TOCSIN_CONFIG")
    if wanted:
        path = Path(wanted)
        if not path.is_file():
            raise BadSetting(f"there is no file {path}", remedy="Name one that exists.")
        return path
    home = environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    places = [
        Path(FILE_NAME),
        Path(home) / "tocsin" / "config.toml",
        Path("/etc/tocsin") / FILE_NAME,
    ]
    return next((path for path in places if path.is_file()), None)


def load(
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    file: Path | None = None,
) -> tuple[Settings, Origins]:
    """Settings from all sources. `flags` maps dotted names to values; None means not given."""
    values: dict[str, object] = dict(keys())
    origins: Origins = dict.fromkeys(values, DEFAULT)

    def put(name: str, value: object, origin: str, remedy: str = "") -> None:
        _must_exist(name, origin, remedy)
        values[name] = _fit(name, value, origin)
        origins[name] = origin

    if file is not None:
        for name, value, line in _read_file(file):
            put(name, value, f"{file} line {line}")
    for variable, text in environment.items():
        if variable.startswith(PREFIX) and variable not in NOT_SETTINGS:
            put(_dotted(variable), text, variable)
    for name, value in flags.items():
        if value is not None:
            put(name, value, "flag")
    settings = _assemble(values, AccessRules() if file is None else read_rules(file))
    if settings.openid.issuer and origins["openid.prefix"] == DEFAULT:
        raise no_prefix(f" ({origins['openid.issuer']})")
    if file is not None:
        openid = replace(settings.openid, more=_read_issuers(file))
        settings = replace(settings, openid=openid)
    return settings, origins


def _assemble(values: Mapping[str, object], rules: AccessRules) -> Settings:
    groups: dict[str, Any] = {"access": rules}
    kinds: dict[str, Any] = get_type_hints(Settings)
    for table, kind in kinds.items():
        if table in RULE_TABLES:
            continue
        own = {f.name: f"{table}.{f.name}" for f in fields(kind)}
        groups[table] = kind(**{key: values[name] for key, name in own.items() if name in values})
    return Settings(**groups)


def _dotted(variable: str) -> str:
    return variable.removeprefix(PREFIX).lower().replace("__", ".", 1)


def _must_exist(name: str, origin: str, remedy: str) -> None:
    known = keys()
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = "`tocsin config show` lists what there is."
    if near:
        as_variable = PREFIX + near[0].upper().replace(".", "__")
        hint = f"Did you mean {as_variable if origin.startswith(PREFIX) else near[0]}?"
    raise BadSetting(f"there is no setting {name} ({origin})", remedy=remedy or hint)


def _fit(name: str, value: object, origin: str) -> object:
    """The value in the type of its default, or an error that names the key and the place."""
    default = keys()[name]
    kind: Any = tuple[str, ...] if isinstance(default, tuple) else type(default)
    if kind == tuple[str, ...] and isinstance(value, str):
        parts = value.split(SEPARATORS.get(name, ","))
        value = [part.strip() for part in parts if part.strip()]
    try:
        fitted = msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise BadSetting(
            f"{name} = {value!r} ({origin}): {error}",
            remedy=f"Its default is {default!r}; give a value of that kind.",
        ) from None
    if isinstance(fitted, int | float) and not isinstance(fitted, bool) and not 0 < fitted < 1e18:
        raise BadSetting(f"{name} = {value!r} ({origin})", remedy="Give a number above zero.")
    if name in ENTRY_CHECKS:
        for entry in fitted:
            ENTRY_CHECKS[name](entry, origin)
    choices = CHOICES.get(name)
    if choices and fitted not in choices:
        raise BadSetting(
            f"{name} = {value!r} ({origin})", remedy=f"It is one of {', '.join(choices)}."
        )
    return fitted


def _read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSetting(
            f"cannot read {path}: {error}",
            remedy="Fix that line: the file is TOML (docs/settings.md shows every table).",
        ) from None


def _read_file(path: Path) -> list[tuple[str, object, int]]:
    text, tables = _read_toml(path)
    lines = _lines(text)
    found: list[tuple[str, object, int]] = []
    for table, content in tables.items():
        if table in RULE_TABLES or (table == "openid" and _is_tables(content)):
            continue
        if not isinstance(content, dict):
            where = f"{path} line {lines.get(table, 1)}"
            _must_exist(table, where, f"Put it under a table: {', '.join(_tables())}.")
        else:
            for key, value in content.items():
                name = f"{table}.{key}"
                found.append((name, value, lines.get(name, 1)))
    return found


def read_rules(path: Path) -> AccessRules:
    """[[access]], [groups] and [[quotas]] of a file, which can be read again while the broker
    runs."""
    text, tables = _read_toml(path)
    return AccessRules(
        rules=_rules(tables.get("access", []), path, text),
        groups=_groups(tables.get("groups", {}), path),
        quotas=_quotas(tables.get("quotas", []), path, text),
        file=str(path),
    )


def _rules(written: object, path: Path, text: str) -> tuple[Rule, ...]:
    lines = _table_lines(text, "access", len(written) if isinstance(written, list) else 0)
    if not isinstance(written, list) or not _is_tables(written):
        raise BadSetting(
            f"access must be a list of tables ({path})", remedy="Begin each: [[access]]."
        )
    found: list[Rule] = []
    for number, each in enumerate(written):
        line = lines[number]
        try:
            # A duration would begin anew with each start.
            if str(each.get("expires", "")).startswith("P"):
                raise BadRight("expires is a duration", remedy="Give a moment in a file.")
            found.append(read_rule(each, f"{path.name}:{line}", 0))
        except BadRight as error:
            raise BadSetting(
                f"[[access]] ({path} line {line}): {error.problem}", remedy=error.remedy
            ) from None
    return tuple(found)


def _read_issuers(path: Path) -> tuple[Issuer, ...]:
    """The [[openid]] tables of a file."""
    text, tables = _read_toml(path)
    written = tables.get("openid")
    if not isinstance(written, list) or not _is_tables(written):
        return ()  # one table, whose keys are settings as others are
    lines = _table_lines(text, "openid", len(written))
    return tuple(
        read_issuer(each, f" ({path} line {line})")
        for each, line in zip(written, lines, strict=True)
    )


def _is_tables(written: object) -> bool:
    return isinstance(written, list) and all(isinstance(each, dict) for each in written)


def _table_lines(text: str, name: str, count: int) -> list[int]:
    """On which lines the [[tables]] of this name begin; numbers of tables if that is not seen."""
    begin = re.compile(rf"\s*\[\[\s*{name}\s*\]\]").match
    lines = [number for number, line in enumerate(text.splitlines(), 1) if begin(line)]
    return lines if len(lines) == count else list(range(1, count + 1))


def _quotas(written: object, path: Path, text: str) -> tuple[QuotaRule, ...]:
    if not isinstance(written, list) or not _is_tables(written):
        raise BadSetting(
            f"quotas must be a list of tables ({path})", remedy="Begin each: [[quotas]]."
        )
    lines = _table_lines(text, "quotas", len(written))
    return tuple(
        read_quota(each, f"[[quotas]] ({path} line {line})")
        for each, line in zip(written, lines, strict=True)
    )


def _groups(written: object, path: Path) -> tuple[tuple[str, frozenset[str]], ...]:
    found: list[tuple[str, frozenset[str]]] = []
    for name, members in written.items() if isinstance(written, dict) else [("", None)]:
        if not isinstance(members, list) or not all(isinstance(each, str) for each in members):
            raise BadSetting(
                f"groups.{name} ({path}) must be a list of names",
                remedy='Write each group as in operators = ["alice", "bob"].',
            )
        found.append((name, frozenset(members)))
    return tuple(found)


def _tables() -> list[str]:
    return [f"[{table.name}]" for table in fields(Settings)]


def _lines(text: str) -> dict[str, int]:
    """On which line each key stands; tomllib does not say."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[\s*([\w.-]+)\s*\]", line)
        key = re.match(r"\s*([\w-]+)\s*=", line)
        if header:
            table = f"{header[1]}."
        elif key:
            found.setdefault(f"{table}{key[1]}", number)
    return found
