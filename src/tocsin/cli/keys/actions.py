"""What the actions of `tocsin keys` do, and how they show it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tocsin.access.policy.rights import check_name
from tocsin.access.session import RESERVED, is_reserved
from tocsin.access.sign_in.certificates import Usage, credential_key, entity_id, key_id, usages_of
from tocsin.cli.keys.directory import NAME, OWN_NAMES, Issued, KeyDirectory, common_name
from tocsin.cli.render import fields, plural, say, show_json, table
from tocsin.errors import BadSetting

DAYS_MAX: Final = 36_500


def _init(arguments: Namespace) -> int:
    keys = _directory(arguments)
    now = _now()
    made = keys.create(arguments.name, arguments.key, _days(arguments.days), now)
    if arguments.json:
        show_json({"directory": str(keys.path), **_view(Issued(made, None), made, now)})
        return 0
    say(f"made the authority {common_name(made)!r}, valid until {_moment(made)}")
    say(f"{keys.ca_file}: give it to every client, and to brokers as certificates.client_ca")
    say(f"{keys.crl_file}: give it to brokers as certificates.crl_file")
    say(f"{keys.path / 'ca.key'}: keep it secret; whoever has it can be anybody")
    return 0


def _issue(arguments: Namespace) -> int:
    keys, now = _directory(arguments), _now()
    name = _checked(arguments.name)
    for group in arguments.group:
        check_name(group, "group")
    if arguments.kind != "client" and not arguments.host:
        raise BadSetting(
            f"a certificate of kind {arguments.kind} needs a host",
            remedy="Name each under which it is reached: --host broker1.example.",
        )
    certificate = keys.issue(
        name,
        arguments.kind,
        arguments.key,
        arguments.group,
        arguments.host,
        _days(arguments.days),
        now,
    )
    return _show_new(keys, certificate, arguments, now)


def _rotate(arguments: Namespace) -> int:
    keys, now = _directory(arguments), _now()
    if bool(arguments.name) == arguments.crl:
        raise BadSetting(
            "rotate is for a name or for --crl",
            remedy="Write `tocsin keys rotate NAME`, or `tocsin keys rotate --crl`.",
        )
    if arguments.crl:
        signed = keys.renew_list(now)
        until = _written(_next_update(signed))
        if arguments.json:
            show_json({"crl": str(keys.crl_file), "revoked": len(signed), "next_update": until})
        else:
            count = plural(len(signed), "certificate")
            say(f"{keys.crl_file}: {count} revoked, valid until {until}")
        return 0
    former = keys.current(arguments.name)
    lasted = (former.not_valid_after_utc - former.not_valid_before_utc).days
    certificate = keys.issue(
        arguments.name,
        _kind(former),
        _key_kind(former),
        _groups(former),
        _hosts(former),
        _days(max(1, lasted) if arguments.days is None else arguments.days),
        now,
    )
    code = _show_new(keys, certificate, arguments, now)
    if not arguments.json:
        serial = f"{former.serial_number:x}"
        say(f"the former one is valid until it is revoked: tocsin keys revoke {serial}")
    return code


def _show(arguments: Namespace) -> int:
    keys, now = _directory(arguments), _now()
    keys.check()
    authority, every = keys.authority(), keys.issued()
    if arguments.name:
        certificate = keys.current(arguments.name)
        serial = f"{certificate.serial_number:x}"
        one = next((each for each in every if each.serial == serial), Issued(certificate, None))
        view = _view(one, authority, now)
        if arguments.json:
            show_json(view)
        else:
            fields((each, _text(value)) for each, value in view.items())
        return 0
    views = [_view(each, authority, now) for each in every]
    if arguments.json:
        whole = {"directory": str(keys.path), "authority": common_name(authority)}
        show_json({**whole, "expires": _moment(authority), "certificates": views})
        return 0
    say(f"{keys.path}: {common_name(authority)}, valid until {_moment(authority)}")
    shown = ("name", "kind", "groups", "key", "state", "expires", "serial")
    table(shown, [[_text(view[column]) for column in shown] for view in views])
    return 0


def _revoke(arguments: Namespace) -> int:
    keys, now = _directory(arguments), _now()
    authority = keys.authority()
    revoked = keys.revoke(arguments.which, now)
    if arguments.json:
        views = [_view(each, authority, now) for each in revoked]
        show_json({"crl": str(keys.crl_file), "revoked": views})
        return 0
    for each in revoked:
        say(f"revoked: {each.name}, {each.serial}")
    if not revoked:
        say("it was revoked before")
    say(f"{keys.crl_file} says so; copy it to the brokers")
    return 0


ACTIONS: Final[Mapping[str, Callable[[Namespace], int]]] = {
    "init": _init,
    "issue": _issue,
    "show": _show,
    "rotate": _rotate,
    "revoke": _revoke,
}


def _directory(arguments: Namespace) -> KeyDirectory:
    return KeyDirectory(Path(arguments.dir))


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _checked(name: str) -> str:
    check_name(name, "principal")
    if is_reserved(name) or name in OWN_NAMES or not NAME.fullmatch(name):
        raise BadSetting(
            f"nobody can be called {name!r:.80} here: it is also the name of files",
            remedy="Use letters, digits and . _ @ + -, up to 64 characters; "
            f"not {', '.join(sorted(RESERVED | OWN_NAMES))}.",
        )
    return name


def _days(days: int) -> int:
    if not 1 <= days <= DAYS_MAX:
        raise BadSetting(f"--days {days}", remedy=f"Give a number from 1 to {DAYS_MAX}.")
    return days


def _show_new(
    keys: KeyDirectory, certificate: x509.Certificate, arguments: Namespace, now: datetime
) -> int:
    name = common_name(certificate)
    files = {"certificate": keys.certificate_file(name), "key_file": keys.key_file(name)}
    if arguments.json:
        view = _view(Issued(certificate, None), keys.authority(), now)
        show_json({**view, **{each: str(path) for each, path in files.items()}})
        return 0
    say(f"issued to {name}, valid until {_moment(certificate)}: {files['certificate']}")
    say(f"{files['key_file']}: its key, for {name} alone")
    return 0


def _view(each: Issued, authority: x509.Certificate, now: datetime) -> dict[str, Any]:
    certificate = each.certificate
    spki = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return {
        "name": each.name,
        "kind": _kind(certificate),
        "groups": _groups(certificate),
        "hosts": _hosts(certificate),
        "key": _key_kind(certificate),
        "state": _state(each, now),
        "expires": _moment(certificate),
        "revoked": None if each.revoked is None else _written(each.revoked),
        "serial": each.serial,
        "entity": entity_id(spki),
        "credential": credential_key(key_id(authority), certificate.serial_number),
    }


def _state(each: Issued, now: datetime) -> str:
    if each.revoked is not None:
        return "revoked"
    return "expired" if now >= each.certificate.not_valid_after_utc else "valid"


def _kind(certificate: x509.Certificate) -> str:
    usages = usages_of(certificate)
    if Usage.TDN in usages:
        return "tdn"
    return "broker" if Usage.SERVER in usages else "client"


def _key_kind(certificate: x509.Certificate) -> str:
    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        return "rsa"
    return "ed25519" if isinstance(key, ed25519.Ed25519PublicKey) else "p256"


def _groups(certificate: x509.Certificate) -> list[str]:
    units = certificate.subject.get_attributes_for_oid(x509.oid.NameOID.ORGANIZATIONAL_UNIT_NAME)
    return [str(each.value) for each in units]


def _hosts(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [str(each.value) for each in names]


def _next_update(signed: x509.CertificateRevocationList) -> datetime:
    assert signed.next_update_utc is not None, "we make none without"
    return signed.next_update_utc


def _moment(certificate: x509.Certificate) -> str:
    return _written(certificate.not_valid_after_utc)


def _written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")
