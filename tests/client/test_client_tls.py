"""Clients and brokers with TLS, and what a person reads when it fails. Certificates made here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pki import DAY, own_files
from served import Served, served
from tocsin.cli.main import run
from tocsin.client import AsyncConsumer, AsyncPublisher, Consumer, Publisher
from tocsin.client.directory import Directory
from tocsin.errors import BadSetting, TlsFailed


def certificate(folder: Path, **how: Any) -> Path:
    return Path(own_files(folder, "localhost", "127.0.0.1", **how)[0])


def with_tls(pem: Path) -> tuple[str, ...]:
    return ("--tls-cert", str(pem), "--tls-key", str(pem.with_suffix(".key")))


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("client-tls"))


@pytest.fixture(scope="module")
def broker(pem: Path) -> Iterator[Served]:
    with served(*with_tls(pem)) as running:
        yield running


@pytest.fixture(scope="module")
def plain() -> Iterator[Served]:
    with served() as running:
        yield running


def test_the_library_trusts_the_authority_of_ca_file(broker: Served, pem: Path) -> None:
    with Publisher(broker.url, ca_file=str(pem)) as publisher:
        seq = publisher.publish("tls/a", {"n": 1})
    for via in ("stream", "box"):
        consumer = Consumer(
            "tls/a", via=via, after=seq - 1, broker=broker.url, ca_file=str(pem), timeout_s=10
        )
        with consumer:
            assert next(consumer).data == {"n": 1}
    with Directory(broker.url, ca_file=str(pem)) as directory:
        assert [entry.name for entry in directory.look_up(kind="producer")] == ["tocsin"]


def test_the_asyncio_library_trusts_the_authority_of_ca_file(broker: Served, pem: Path) -> None:
    async def exchange() -> object:
        async with AsyncPublisher(broker.url, ca_file=str(pem)) as publisher:
            seq = await publisher.publish("tls/b", {"n": 2})
        events = AsyncConsumer("tls/b", after=seq - 1, broker=broker.url, ca_file=str(pem))
        async with events, asyncio.timeout(10):
            return (await anext(events)).data

    assert asyncio.run(exchange()) == {"n": 2}


@pytest.mark.parametrize(
    "command",
    [
        ["pub", "tls/c", "1"],
        ["pub", "tls/c", "<a/>", "--as", "wse"],
        ["sub", "tls/c", "--all", "--exit-at-end"],
        ["sub", "--all", "-n", "1", "-W", "10"],
        ["sub", "--all", "-n", "1", "-W", "10", "--via", "ws"],
        ["sub", "--all", "-n", "1", "-W", "10", "--via", "box"],
        ["subs", "ls"],
        ["box", "ls"],
        ["dlq", "ls"],
        ["find", "producers"],
        ["wf", "ls"],
        ["concepts", "ls"],
    ],
    ids=" ".join,
)
def test_every_command_takes_ca_file(broker: Served, pem: Path, command: list[str], capsys) -> None:
    with Publisher(broker.url, ca_file=str(pem)) as publisher:
        publisher.publish("tls/c", 0)

    assert run([*command, "--broker", broker.url, "--ca-file", str(pem)]) == 0, capsys.readouterr()
    assert run([*command, "--broker", broker.url]) == 3
    assert "is not trusted" in capsys.readouterr().err


def test_the_environment_names_it_for_all(broker: Served, pem: Path, monkeypatch) -> None:
    monkeypatch.setenv("TOCSIN_CA_FILE", str(pem))

    assert run(["subs", "ls", "--broker", broker.url]) == 0


def error_of(url: str, capsys, *options: str) -> str:
    assert run(["subs", "ls", "--broker", url, *options]) == 3
    return str(capsys.readouterr().err)


def test_an_unknown_authority_is_said_with_the_option_that_helps(broker: Served, capsys) -> None:
    text = error_of(broker.url, capsys)

    assert "its certificate is not trusted (self-signed certificate) [T608]" in text
    assert "--ca-file FILE" in text
    assert "tocsin serve" not in text


def test_a_wrong_host_name_is_said(broker: Served, pem: Path, capsys) -> None:
    url = broker.url.replace("127.0.0.1", "127.0.0.2")
    with served("--http", "127.0.0.2:0", *with_tls(pem)) as other:
        url = other.url
        text = error_of(url, capsys, "--ca-file", str(pem))

    assert "its certificate is not for '127.0.0.2' [T608]" in text
    assert "subjectAltName" in text


def test_an_expired_certificate_is_said(tmp_path: Path, capsys) -> None:
    now = datetime.now(UTC)
    old = certificate(tmp_path, begins=now - 2 * DAY, ends=now - DAY)
    with served(*with_tls(old)) as running:
        text = error_of(running.url, capsys, "--ca-file", str(old))

    assert "its certificate has expired [T608]" in text
    assert "Renew" in text


def test_http_to_a_broker_with_tls_is_said(broker: Served, capsys) -> None:
    text = error_of(broker.url.replace("https", "http"), capsys)

    assert "it uses TLS [T608]" in text
    assert f"Write {broker.url}." in text


def test_https_to_a_broker_without_tls_is_said(plain: Served, capsys) -> None:
    text = error_of(plain.url.replace("http", "https"), capsys)

    assert "it does not use TLS [T608]" in text
    assert f"Write {plain.url}." in text


def test_asyncio_says_the_same(broker: Served, plain: Served) -> None:
    async def publish(url: str) -> None:
        async with AsyncPublisher(url) as publisher:
            await publisher.publish("tls/d")

    for url, words in (
        (broker.url, "is not trusted"),
        (broker.url.replace("https", "http"), "it uses TLS"),
        (plain.url.replace("http", "https"), "it does not use TLS"),
    ):
        with pytest.raises(TlsFailed, match=words):
            asyncio.run(publish(url))


@pytest.mark.parametrize("text", [None, "no certificate\n"])
def test_a_ca_file_that_cannot_be_read_is_said(
    broker: Served, tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)

    with pytest.raises(BadSetting, match=r"the CA file .*ca\.pem cannot be read"):
        Publisher(broker.url, ca_file=str(file)).publish("tls/e")
