"""Where a client's credentials are found, and whom they are shown to."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path

import pytest

from tocsin.client.transport.address import Address, address_learned, broker_address
from tocsin.client.transport.http1 import request_bytes
from tocsin.credentials.lookup import VARIABLES, Credentials, stored_path
from tocsin.credentials.secret import Secret
from tocsin.credentials.stored import Login, Renewal, read_logins, store_login
from tocsin.errors import BadCredential

BROKER = "http://127.0.0.1:8400"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def file_with(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def shown(address: Address) -> str | None:
    head = request_bytes(address, "GET", "/").decode()
    found = [line for line in head.split("\r\n") if line.startswith("Authorization: Bearer ")]
    return found[0].removeprefix("Authorization: Bearer ") if found else None


def test_arguments_come_before_the_environment_and_that_before_the_login(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert shown(broker_address(BROKER)) is None
    store_login(stored_path(), BROKER, Login(Secret("stored")))
    assert shown(broker_address(BROKER)) == "stored"
    monkeypatch.setenv("TOCSIN_TOKEN_FILE", file_with(tmp_path / "of-variable", "in-file\n"))
    assert shown(broker_address(BROKER)) == "in-file"
    monkeypatch.setenv("TOCSIN_TOKEN", "in-variable")
    assert shown(broker_address(BROKER)) == "in-variable"
    named = file_with(tmp_path / "named", "in-named-file")
    assert shown(broker_address(BROKER, token_file=named)) == "in-named-file"
    assert shown(broker_address(BROKER, token_file=named, token="given")) == "given"


def test_who_names_a_certificate_is_not_signed_in_by_a_login(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """To a broker a token counts more than a certificate."""
    store_login(stored_path(), BROKER, Login(Secret("stored")))
    of_variable, named = (file_with(tmp_path / name, "PEM") for name in ("variable", "named"))
    monkeypatch.setenv("TOCSIN_CLIENT_CERT", of_variable)
    assert shown(broker_address(BROKER)) is None

    monkeypatch.setenv("TOCSIN_TOKEN", "in-variable")
    assert shown(broker_address(BROKER)) == "in-variable"
    assert shown(broker_address(BROKER, client_certificate=named)) is None
    assert shown(broker_address(BROKER, client_certificate=named, token="given")) == "given"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_token_file_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    named = file_with(tmp_path / "token", "tcs_1_verysecret", mode)

    with pytest.raises(BadCredential) as refused:
        request_bytes(broker_address(BROKER, token_file=named), "GET", "/")

    assert named in refused.value.problem
    assert refused.value.remedy == f"chmod 600 {named}"
    assert "verysecret" not in str(refused.value)


def test_so_is_a_file_of_logins(tmp_path: Path) -> None:
    store_login(stored_path(), BROKER, Login(Secret("stored")))
    os.chmod(stored_path(), 0o644)

    with pytest.raises(BadCredential, match=r"credentials\.toml can be read or changed by others"):
        request_bytes(broker_address(BROKER), "GET", "/")


def test_so_is_a_private_key(tmp_path: Path) -> None:
    certificate = file_with(tmp_path / "own.pem", "", 0o644)
    key = file_with(tmp_path / "own.key", "", 0o640)

    with pytest.raises(BadCredential, match=r"own\.key can be read or changed by others"):
        broker_address("https://x", client_certificate=certificate, client_key=key)
    with pytest.raises(BadCredential, match="no certificate for it"):
        broker_address("https://x", client_key=key)


@pytest.mark.parametrize(
    "text", ["", "two words", "line\nline", "ä", "x" * 9_000, "a\rX-Other: b", "\x00"]
)
def test_what_is_no_token_is_refused_and_not_repeated(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadCredential) as refused:
        broker_address(BROKER, token=text)

    assert text.strip()[:20] not in refused.value.problem or not text.strip()


def test_a_token_goes_over_plain_http_to_this_machine_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for near in ("127.0.0.1", "127.8.8.8", "localhost", "[::1]"):
        assert shown(broker_address(f"http://{near}:8400", token="t")) == "t"
    for far in ("events.example.org", "127.example.org", "127.0.0.1.example.org", "10.0.0.1"):
        with pytest.raises(BadCredential, match="is not sent to"):
            shown(broker_address(f"http://{far}:8400", token="t"))
        assert shown(broker_address(f"https://{far}", token="t")) == "t"
        assert shown(broker_address(f"http://{far}", token="t", insecure_token=True)) == "t"
    monkeypatch.setenv("TOCSIN_INSECURE_TOKEN", "1")
    assert shown(broker_address("http://10.0.0.1", token="t")) == "t"


def test_a_login_is_for_one_scheme_host_and_port() -> None:
    store_login(stored_path(), "https://events.example.org:443", Login(Secret("stored")))

    assert shown(broker_address("https://Events.example.org/behind/a/proxy")) == "stored"
    for other in (
        "https://events.example.org:8443",
        "https://events.example.org.evil.net",
        "http://events.example.org:443",
        "https://example.org",
    ):
        assert shown(broker_address(other)) is None


def test_a_broker_that_nobody_named_gets_nothing_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOCSIN_TOKEN", "for-another")
    assert shown(address_learned("http://127.0.0.1:9")) is None

    store_login(stored_path(), "http://127.0.0.1:9", Login(Secret("its-own")))
    assert shown(address_learned("http://127.0.0.1:9")) == "its-own"


def test_a_token_file_that_changes_is_read_again(tmp_path: Path) -> None:
    named = file_with(tmp_path / "token", "first")
    address = broker_address(BROKER, token_file=named)
    assert shown(address) == "first"

    fresh = tmp_path / "fresh"
    file_with(fresh, "second")
    fresh.replace(named)

    assert shown(address) == "second"


def test_a_pipe_is_read_once_for_the_whole_process(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"from-a-pipe\n")
    os.close(writing)

    for _ in range(3):
        assert shown(broker_address(BROKER, token_file=f"/dev/fd/{reading}")) == "from-a-pipe"
    os.close(reading)


def test_nothing_prints_or_pickles_a_token() -> None:
    address = broker_address(BROKER, token="verysecret")
    credentials = address.credentials
    assert credentials is not None
    login = Login(Secret("verysecret"), 1.0, Renewal("e", "c", Secret("verysecret")))

    for each in (address, credentials, credentials.token(), login):
        assert "verysecret" not in f"{each} {each!r}"
    for each in (address, credentials, credentials.token()):
        with pytest.raises(TypeError):
            pickle.dumps(each)
        with pytest.raises(TypeError):
            copy.deepcopy(each)


def test_what_is_stored_is_read_back_and_is_private() -> None:
    path = stored_path()
    logins = {
        "https://a:443": Login(Secret('odd"\\token')),
        "http://[::1]:8400": Login(Secret("t"), 17.0, Renewal("https://i/t", "id", Secret("r"))),
    }
    for name, login in logins.items():
        store_login(path, name, login)

    assert read_logins(path)[0] == logins
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700
    store_login(path, "https://a:443", None)
    assert list(read_logins(path)[0]) == ["http://[::1]:8400"]


def test_a_damaged_file_of_logins_is_not_quoted() -> None:
    Path(stored_path()).parent.mkdir(parents=True)
    file_with(Path(stored_path()), 'token = "verysecret\n')

    with pytest.raises(BadCredential) as refused:
        shown(broker_address(BROKER))

    assert "verysecret" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_credentials_of_a_mapping_are_of_that_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_TOKEN", "t")
    credentials = Credentials(broker_address(BROKER).origin, environment={})

    assert credentials.token() is None
