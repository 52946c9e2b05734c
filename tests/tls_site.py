"""A site with an authority, brokers that ask for certificates, and clients that have some."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pki import BROKER, Made, authority, made, name, new_key, revocation_list
from served import Served, served

WAIT_S = 20.0
RELOAD_S = "0.1"
RULES = """
[[access]]
principal = "alice"
action = ["publish", "subscribe", "read"]
topic = "lab/**"

[[access]]
group = "operators"
action = "*"

[[access]]
group = "brokers"
action = ["publish", "subscribe", "manage", "read"]
topic = "**"
"""


class Site:
    """The files of one site in a folder."""

    def __init__(self, folder: Path, common: str = "site") -> None:
        self.folder = folder = folder / common
        folder.mkdir()
        self.authority = authority(common)
        self.ca = folder / f"{common}.pem"
        self.ca.write_bytes(self.authority.pem)  # for the broker: what clients are known by
        self.crl = folder / f"{common}.crl"
        self.revoke()
        self.host = self.issue("host", "localhost", usages=BROKER, hosts=("localhost",))
        self.config = folder / f"{common}.toml"
        self.config.write_text(RULES)

    def issue(
        self,
        file: str,
        common: str | None = None,
        *,
        units: Sequence[str] = (),
        hosts: Sequence[str] = (),
        by: Made | None = None,
        **how: Any,
    ) -> tuple[str, str]:
        """The paths of a new certificate and its key."""
        subject = name(common or file, units=units)
        self.last = made(subject, by or self.authority, names=hosts, **how)
        return self.last.write(self.folder, file)

    def revoke(self, *certificates: Made, **how: Any) -> None:
        serials = [each.certificate.serial_number for each in certificates]
        self.crl.write_bytes(revocation_list(self.authority, serials, **how))

    def flags(self, *, mode: str = "required") -> tuple[str, ...]:
        return (
            "--tls-cert", self.host[0], "--tls-key", self.host[1], "--config", str(self.config),
        )  # fmt: skip

    def environment(self, **settings: str) -> dict[str, str]:
        found = {
            "AUTH__MODE": "required",
            "CERTIFICATES__CLIENT_CA": str(self.ca),
            "CERTIFICATES__CRL_FILE": str(self.crl),
            "CERTIFICATES__RELOAD_S": RELOAD_S,
            **settings,
        }
        return {f"TOCSIN_{key}": value for key, value in found.items()}

    @contextlib.contextmanager
    def broker(self, *flags: str, **settings: str) -> Iterator[Served]:
        with served(*self.flags(), *flags, env=self.environment(**settings)) as running:
            yield running

    def context(self, files: tuple[str, str] | None = None) -> ssl.SSLContext:
        """That of a client, which trusts the site and shows this certificate."""
        context = ssl.create_default_context(cadata=self.authority.pem.decode())
        context.set_ciphers("DEFAULT:@SECLEVEL=0")  # so that it shows weak ones too
        if files is not None:
            context.load_cert_chain(*files)
        return context


class Refused(Exception):
    """There was no connection, or it was closed before an answer."""


def connect(address: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    host, _, port = address.rpartition(":")
    plain = socket.create_connection((host, int(port)), timeout=WAIT_S)
    try:
        return context.wrap_socket(plain, server_hostname="localhost")
    except OSError as error:
        plain.close()
        raise Refused(str(error)) from error


class Client:
    """One kept-alive HTTP connection by TLS."""

    def __init__(self, broker: Served, context: ssl.SSLContext) -> None:
        host, _, port = broker.address.rpartition(":")
        self.connection = http.client.HTTPSConnection(
            host, int(port), timeout=WAIT_S, context=context
        )
        self.connection.auto_open = 0
        self.connection.sock = connect(broker.address, context)  # type: ignore[assignment]

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def call(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        kind = {"content-type": "application/json", **(headers or {})}
        try:
            self.connection.request(method, path, data, kind)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Refused(str(error)) from error
        return answer.status, json.loads(text) if text else None

    def publish(self, topic: str = "lab/x", id: str = "e1", **headers: str) -> tuple[int, Any]:
        event = {"specversion": "1.0", "id": id, "source": "/t", "type": "t", "topic": topic}
        headers = {"content-type": "application/cloudevents+json", **headers}
        return self.call("POST", "/events", {**event, "data": {"n": 1}}, headers)


__all__ = ["Client", "Refused", "Site", "connect", "new_key"]
