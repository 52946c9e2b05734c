"""`tocsin login`, at a real broker, and by the device flow of a small issuer."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from access.issuer import OpenIdIssuer
from served import ROOT, Served, served
from tocsin.client import Publisher
from tocsin.client.transport.connection import Connection
from tocsin.credentials.lookup import VARIABLES
from tocsin.credentials.secret import Secret
from tocsin.credentials.stored import Login, Renewal, read_logins, store_login
from tocsin.errors import NotSignedIn


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served(env={"TOCSIN_AUTH__MODE": "required"}) as running:
        yield running


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in (*VARIABLES, "TOCSIN_BROKER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "tocsin" / "credentials.toml"


def login(
    url: str, *arguments: str, typed: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    return command("login", "--broker", url, *arguments, typed=typed, **more)


def command(*arguments: str, typed: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tocsin", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **more},
        cwd=ROOT, capture_output=True, text=True, timeout=60, input=typed,
    )  # fmt: skip


def test_one_signs_in_once_and_every_command_is_signed_in(broker: Served, config: Path) -> None:
    token = (broker.directory / "admin.token").read_text()
    assert command("pub", "in/a", "1", "--broker", broker.url).returncode == 4

    said = login(broker.url, typed=token)

    assert said.returncode == 0, said.stderr
    assert said.stderr.startswith(f"signed in at {broker.url} as admin")
    assert token.strip() not in said.stdout + said.stderr
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert command("pub", "in/a", "1", "--broker", broker.url).returncode == 0
    shown = login(broker.url, "--show", "--json")
    assert json.loads(shown.stdout)["principal"] == "admin"
    assert json.loads(shown.stdout)["signed_in_by"] == "tocsin login"
    assert token.strip() not in shown.stdout + shown.stderr
    assert login(broker.url, "--remove").returncode == 0
    assert command("pub", "in/a", "1", "--broker", broker.url).returncode == 4
    assert login(broker.url, "--remove").returncode == 5


def test_the_token_may_come_from_a_file(broker: Served, config: Path) -> None:
    said = login(broker.url, "--token-file", str(broker.directory / "admin.token"), "--json")

    assert json.loads(said.stdout)["principal"] == "admin"
    assert list(read_logins(str(config))[0]) == [broker.url]
    said = login(broker.url, "--show", TOCSIN_TOKEN="tcs_1_other")
    assert said.returncode == 4


@pytest.mark.parametrize("token", ["tcs_0_wrongsecret", "wrongsecret"])
def test_a_token_that_the_broker_refuses_is_not_kept(
    broker: Served, config: Path, token: str
) -> None:
    said = login(broker.url, typed=f"{token}\n")

    assert said.returncode == 4
    problem, remedy = said.stderr.strip().splitlines()
    assert NotSignedIn.code in problem
    assert remedy
    assert "wrongsecret" not in said.stdout + said.stderr
    assert not config.exists()


def test_a_token_is_not_sent_in_clear_to_be_checked(config: Path) -> None:
    said = login("http://192.0.2.1:8400", typed="tcs_1_verysecret\n")

    assert said.returncode == 2
    assert "without TLS" in said.stderr
    assert "verysecret" not in said.stderr


class Issuer(BaseHTTPRequestHandler):
    """An issuer of OpenID tokens and the broker that takes them, in one. Each access token is good
    until the next; each refresh token for one use."""

    lock = threading.Lock()
    polls = 0
    good = "access-0"
    refresh = "refresh-0"
    lasts_s = 3_600
    refuses = False
    asked: list[dict[str, str]] = []

    def do_GET(self) -> None:
        base = f"http://127.0.0.1:{self.server.server_address[1]}"
        if self.path == "/realm/.well-known/openid-configuration":
            self.answer(200, {
                "issuer": f"{base}/realm",
                "device_authorization_endpoint": f"{base}/device",
                "token_endpoint": f"{base}/token?x=1",
            })  # fmt: skip
        elif self.headers.get("Authorization") == f"Bearer {Issuer.good}":
            self.answer(200, {"principal": "alice", "groups": ["ops"], "expires": None})
        else:
            self.answer(401, {"code": "T216", "detail": "no", "remedy": "sign in"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        Issuer.asked.append(form)
        with Issuer.lock:
            self.respond(form)

    def respond(self, form: dict[str, str]) -> None:
        if self.path == "/device":
            self.answer(200, {
                "device_code": "device-secret", "user_code": "WDJB-MJHT", "interval": 0,
                "verification_uri": "https://id.example.org/device", "expires_in": 60,
            })  # fmt: skip
        elif form["grant_type"] == "refresh_token":
            if form["refresh_token"] == Issuer.refresh and not Issuer.refuses:
                self.grant()
            else:
                self.answer(400, {"error": "invalid_grant", "error_description": "it was used"})
        elif Issuer.refuses:
            self.answer(400, {"error": "access_denied"})
        elif Issuer.polls < 2:
            Issuer.polls += 1
            self.answer(400, {"error": "authorization_pending"})
        else:
            assert form["device_code"] == "device-secret"
            self.grant()

    def grant(self) -> None:
        number = int(Issuer.good.rpartition("-")[2]) + 1
        Issuer.good, Issuer.refresh = f"access-{number}", f"refresh-{number}"
        self.answer(200, {
            "access_token": Issuer.good, "token_type": "Bearer", "expires_in": Issuer.lasts_s,
            "refresh_token": Issuer.refresh,
        })  # fmt: skip

    def answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def issuer() -> Iterator[str]:
    Issuer.polls, Issuer.good, Issuer.refresh = 0, "access-0", "refresh-0"
    Issuer.lasts_s, Issuer.refuses = 3_600, False
    Issuer.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_one_signs_in_at_an_issuer_in_a_browser(issuer: str, config: Path) -> None:
    said = login(issuer, "--issuer", f"{issuer}/realm", "--client-id", "tocsin")

    assert said.returncode == 0, said.stderr
    assert "https://id.example.org/device" in said.stderr
    assert "WDJB-MJHT" in said.stderr
    assert "as alice, of ops" in said.stderr
    assert Issuer.asked[0] == {"client_id": "tocsin", "scope": "openid offline_access"}
    for secret in ("device-secret", "access-1", "refresh-1"):
        assert secret not in said.stdout + said.stderr
    stored = read_logins(str(config))[0][issuer]
    assert stored.renewal is not None
    assert stored.renewal.token_endpoint == f"{issuer}/token?x=1"


def test_who_refuses_there_is_not_signed_in(issuer: str, config: Path) -> None:
    Issuer.refuses = True

    said = login(issuer, "--issuer", f"{issuer}/realm", "--client-id", "tocsin")

    assert said.returncode == 4
    assert "access_denied" in said.stderr
    assert not config.exists()


def expiring(issuer: str, config: Path, left_s: float) -> None:
    renewal = Renewal(f"{issuer}/token", "tocsin", Secret("refresh-0"))
    store_login(str(config), issuer, Login(Secret("access-0"), time.time() + left_s, renewal))


def test_a_token_that_ends_is_renewed_before_it_is_sent(issuer: str, config: Path) -> None:
    expiring(issuer, config, 5)

    with Connection(issuer) as connection:
        assert connection.request("GET", "/access/whoami").status == 200
        assert connection.request("GET", "/access/whoami").status == 200

    assert Issuer.good == "access-1", "it was renewed once"
    assert read_logins(str(config))[0][issuer].token == Secret("access-1")


def test_of_many_that_find_it_expired_one_renews_it(issuer: str, config: Path) -> None:
    expiring(issuer, config, -5)

    statuses: list[int] = []

    def ask() -> None:
        with Connection(issuer) as connection:
            statuses.append(connection.request("GET", "/access/whoami").status)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert statuses == [200] * 8
    assert Issuer.good == "access-1"


def test_a_login_that_the_issuer_ended_says_so(issuer: str, config: Path) -> None:
    expiring(issuer, config, -5)
    Issuer.refuses = True

    with pytest.raises(NotSignedIn, match="invalid_grant"):
        Publisher(issuer).publish("a", 1)


def test_a_broker_takes_what_an_issuer_gave(config: Path, tmp_path: Path) -> None:
    settings = {
        "TOCSIN_AUTH__MODE": "required",
        "TOCSIN_CONFIG": str(tmp_path / "tocsin.toml"),
    }
    with OpenIdIssuer() as sso:
        (tmp_path / "tocsin.toml").write_text(
            f'[openid]\nissuer = "{sso.url}"\naudience = "tocsin"\nprefix = "lab:"\n'
            '[[access]]\nprincipal = "lab:alice"\naction = "publish"\ntopic = "ops/**"\n'
        )
        with served(env=settings) as broker:
            command_line = ["login", "--broker", broker.url, "--issuer", sso.url]
            process = subprocess.Popen(
                [sys.executable, "-m", "tocsin", *command_line, "--client-id", "cli"],
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, cwd=ROOT,
                stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert process.stderr is not None
            code = process.stderr.readline().rpartition(" ")[2].strip(" .\n")
            sso.approve(code, "alice")
            _, said = process.communicate(timeout=30)
            assert process.returncode == 0, said
            assert "as lab:alice" in said
            with Publisher(broker.url) as publisher:
                publisher.publish("ops/a", 1)

            login = read_logins(str(config))[0][broker.url]
            assert login.renewal is not None
            store_login(str(config), broker.url, login._replace(expires_at_s=time.time() - 1))
            with Publisher(broker.url) as publisher:
                publisher.publish("ops/a", 2)

            renewed = read_logins(str(config))[0][broker.url]
            assert renewed.renewal is not None
            assert renewed.renewal.refresh_token != login.renewal.refresh_token


def test_an_issuer_is_asked_over_tls_alone(config: Path) -> None:
    said = login("http://127.0.0.1:9", "--issuer", "http://id.example.org", "--client-id", "tocsin")

    assert said.returncode == 2
    assert "is not an https URL" in said.stderr
