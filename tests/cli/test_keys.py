"""`tocsin keys`: what it makes is what OpenSSL and the broker take, and what it refuses."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tocsin.access.sign_in.certificates import Authorities, Usage, verified
from tocsin.access.sign_in.revocation_lists import read_lists, revoked_by, without_list
from tocsin.cli.keys.directory import KeyDirectory
from tocsin.cli.main import run
from tocsin.errors import BadCredential


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a new authority."""
    monkeypatch.chdir(tmp_path)
    assert run(["keys", "init", "--name", "Radar site"]) == 0
    return tmp_path / "tocsin-keys"


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    """What a command prints as JSON."""
    capsys.readouterr()
    assert run(["keys", *arguments, "--json"]) == code, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    code = run(["keys", *arguments])
    return code, capsys.readouterr().err


def der(path: Path) -> bytes:
    return x509.load_pem_x509_certificate(path.read_bytes()).public_bytes(Encoding.DER)


def authorities(site: Path) -> Authorities:
    return Authorities.read((site / "ca.pem").read_bytes(), "ca.pem")


@pytest.mark.parametrize("key", ["p256", "rsa", "ed25519"])
def test_whom_it_issues_a_certificate_can_sign_in(
    site: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    shown = said(capsys, "issue", "alice", "--group", "operators", "--group", "radar", "--key", key)

    identity = verified(der(site / "alice.pem"), authorities(site), time.time_ns())

    assert identity.principal.name == "alice" == shown["name"]
    assert identity.principal.groups == {"operators", "radar"}
    assert identity.credential.key == shown["credential"]
    assert identity.entity_id == shown["entity"]
    assert shown["key"] == key
    assert shown["key_file"] == "tocsin-keys/alice.key"


@pytest.mark.parametrize("key", ["p256", "rsa"])
def test_both_kinds_of_authorities_can_sign(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    directory = tmp_path / "deep" / "keys"
    said(capsys, "init", "--dir", str(directory), "--key", key)
    said(capsys, "issue", "a", "--dir", str(directory))

    assert verified(der(directory / "a.pem"), authorities(directory), time.time_ns())


def test_a_broker_s_is_for_both_sides_and_only_a_discovery_node_s_for_topics(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "issue", "b1", "--kind", "broker", "--host", "b1.example", "--host", "127.0.0.1")
    said(capsys, "issue", "t1", "--kind", "tdn", "--host", "t1.example")
    said(capsys, "issue", "alice")

    def usages(name: str) -> set[Usage]:
        found = verified(der(site / f"{name}.pem"), authorities(site), time.time_ns())
        return set(found.usages)

    assert usages("b1") == {Usage.CLIENT, Usage.SERVER}
    assert usages("t1") == set(Usage)
    assert usages("alice") == {Usage.CLIENT}
    assert said(capsys, "show", "b1")["hosts"] == ["b1.example", "127.0.0.1"]


def test_keys_are_for_their_owner_alone(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "issue", "alice")

    assert stat.S_IMODE(site.stat().st_mode) == 0o700
    for name in ("ca.key", "alice.key"):
        assert stat.S_IMODE((site / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["ca.key", "alice.key"])
def test_with_a_key_that_others_can_read_nothing_is_done(
    site: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    said(capsys, "issue", "alice")
    (site / name).chmod(0o640)

    for arguments in (("issue", "bob"), ("show",), ("rotate", "alice")):
        code, error = refused(capsys, *arguments)
        assert code == 2
        assert "can be read or changed by others (its mode is 0640) [T220]" in error
        assert f"chmod 600 tocsin-keys/{name}" in error
    assert not (site / "bob.pem").exists()


def test_a_revoked_name_is_on_the_list_with_all_its_certificates(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, other = said(capsys, "issue", "alice"), said(capsys, "issue", "bob")
    second = said(capsys, "rotate", "alice")

    answer = said(capsys, "revoke", "alice")

    lists = read_lists((site / "crl.pem").read_bytes(), authorities(site), "crl.pem")
    assert revoked_by(lists) == {first["credential"], second["credential"]}
    assert other["credential"] not in revoked_by(lists)
    assert not without_list(authorities(site), lists, time.time_ns())
    assert [each["serial"] for each in answer["revoked"]] == [first["serial"], second["serial"]]
    states = {each["serial"]: each["state"] for each in said(capsys, "show")["certificates"]}
    assert states == {
        first["serial"]: "revoked",
        second["serial"]: "revoked",
        other["serial"]: "valid",
    }
    assert said(capsys, "revoke", "alice")["revoked"] == []


def test_one_certificate_can_be_revoked_by_its_serial_number(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = said(capsys, "issue", "alice")
    said(capsys, "rotate", "alice")

    said(capsys, "revoke", first["serial"].upper())

    lists = read_lists((site / "crl.pem").read_bytes(), authorities(site), "crl.pem")
    assert revoked_by(lists) == {first["credential"]}


def test_rotating_keeps_everything_but_the_key(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = ("b1", "--kind", "broker", "--host", "b1.example", "--group", "g", "--key", "ed25519")
    first = said(capsys, "issue", *made, "--days", "7")

    second = said(capsys, "rotate", "b1")

    same = ("name", "kind", "groups", "hosts", "key")
    assert {each: first[each] for each in same} == {each: second[each] for each in same}
    assert first["entity"] != second["entity"]
    assert first["serial"] != second["serial"]
    assert second["expires"][:10] == first["expires"][:10]


def test_the_list_is_renewed_with_a_higher_number(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def number() -> int:
        signed = x509.load_pem_x509_crl((site / "crl.pem").read_bytes())
        return signed.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number

    said(capsys, "issue", "alice")
    said(capsys, "revoke", "alice")
    before = number()

    assert said(capsys, "rotate", "--crl")["revoked"] == 1

    assert number() == before + 1


def test_two_commands_at_once_lose_nothing(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"n{number}" for number in range(8)]
    for name in names:
        said(capsys, "issue", name)

    def revoke(name: str) -> None:
        KeyDirectory(site).revoke(name, datetime.now(UTC))

    threads = [threading.Thread(target=revoke, args=(name,)) for name in names]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    lists = read_lists((site / "crl.pem").read_bytes(), authorities(site), "crl.pem")
    assert len(revoked_by(lists)) == len(names)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("init",), 2, "holds an authority already"),
        (("issue", "b1", "--kind", "broker"), 2, "a certificate of kind broker needs a host"),
        (("issue", "t1", "--kind", "tdn"), 2, "a certificate of kind tdn needs a host"),
        (("issue", "ca"), 2, "nobody can be called 'ca'"),
        (("issue", "broker"), 2, "nobody can be called 'broker'"),
        (("issue", "anonymous"), 2, "nobody can be called 'anonymous'"),
        (("issue", "../x"), 2, "nobody can be called '../x'"),
        (("issue", "a" * 65), 2, "nobody can be called"),
        (("issue", "a", "--days", "0"), 2, "--days 0"),
        (("issue", "a", "--host", "a:80"), 2, "neither a host name nor an IP address"),
        (("issue", "a", "--host", "a b"), 2, "neither a host name nor an IP address"),
        (("issue", "a", "--group", "g\n"), 1, "cannot be the name"),
        (("show", "nobody"), 5, "holds no certificate of 'nobody'"),
        (("show", "ca"), 5, "holds no certificate of 'ca'"),
        (("rotate", "nobody"), 5, "holds no certificate of 'nobody'"),
        (("rotate",), 2, "rotate is for a name or for --crl"),
        (("rotate", "a", "--crl"), 2, "rotate is for a name or for --crl"),
        (("revoke", "nobody"), 5, "holds no certificate of 'nobody'"),
        (("issue", "a", "--dir", "elsewhere"), 5, "elsewhere holds no authority"),
        (("show", "--dir", "elsewhere"), 5, "elsewhere holds no authority"),
    ],
)
def test_what_is_refused(
    site: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    words: str,
) -> None:
    found, error = refused(capsys, *arguments)

    assert found == code, error
    assert words in error


def test_a_key_that_is_not_the_authority_s_own_signs_nothing(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "init", "--dir", str(tmp_path / "other"))
    shutil.copy(tmp_path / "other" / "ca.key", site / "ca.key")

    code, error = refused(capsys, "issue", "alice")

    assert code == 2
    assert "is not the key of" in error


def test_nothing_is_valid_for_longer_than_its_authority(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = ("--dir", str(tmp_path / "short"))
    authority = said(capsys, "init", *directory, "--days", "3")

    assert said(capsys, "issue", "a", *directory)["expires"] <= authority["expires"]


def test_no_private_key_is_ever_printed(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    for arguments in (["issue", "alice"], ["show"], ["show", "alice"], ["rotate", "alice"]):
        assert run(["keys", *arguments]) == 0
        printed = capsys.readouterr()
        for line in (site / "alice.key").read_text().splitlines()[1:-1]:
            assert line not in printed.out + printed.err


@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl command")
def test_openssl_thinks_the_same(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "issue", "alice", "--key", "ed25519")
    said(capsys, "issue", "bob", "--key", "rsa")
    said(capsys, "revoke", "bob")

    def openssl(name: str) -> int:
        files = ["-CAfile", "ca.pem", "-crl_check", "-CRLfile", "crl.pem", f"{name}.pem"]
        command = ["openssl", "verify", "-x509_strict", "-purpose", "sslclient", *files]
        return subprocess.run(command, cwd=site, capture_output=True, check=False).returncode

    assert openssl("alice") == 0
    assert openssl("bob") != 0


def test_a_torn_certificate_in_the_directory_is_named(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "issue", "alice")
    (site / "alice.pem").write_text("torn")

    with pytest.raises(BadCredential, match=r"alice\.pem cannot be read"):
        KeyDirectory(site).current("alice")
