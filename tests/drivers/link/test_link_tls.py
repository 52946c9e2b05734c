"""Links over TLS: the certificate of the listener, and why a link could not be."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

import pytest
from link_pair import Side, closing, play

from tocsin.config import HttpSettings, OverlaySettings
from tocsin.drivers.tls.contexts import authorities_context, listener_context
from tocsin.errors import BadSetting, PeerFailed
from waiting import async_wait_until


def offered(made: Path) -> ssl.SSLContext:
    files = str(made / "own.pem"), str(made / "own.key")
    context = listener_context(HttpSettings(tls_certificate=files[0], tls_key=files[1]))
    assert context is not None
    return context


def trusting(made: Path) -> ssl.SSLContext:
    return authorities_context("overlay.ca_file", str(made / "own.pem"))


def by_name(address: str) -> str:
    return address.replace("127.0.0.1", "localhost")


def test_bytes_go_both_ways_and_the_end_is_told(made: Path) -> None:
    async def scene() -> None:
        there, here = Side(), Side(trusts=trusting(made))
        async with closing(here, there):
            outgoing = await here.connect(by_name(await there.listen(offered(made))))
            await async_wait_until(lambda: there.receivers, "the connection is accepted")
            [accepted] = there.receivers
            outgoing.transport.write(b"x" * (5 << 20))
            accepted.transport.write(b"hello")
            await async_wait_until(lambda: len(accepted.data) == 5 << 20, "all of it arrives")
            await async_wait_until(lambda: outgoing.data == b"hello", "and the answer")
            await async_wait_until(lambda: "written" in outgoing.calls, "the network has taken it")
            outgoing.transport.close()
            await async_wait_until(
                lambda: accepted.has_ended and outgoing.has_ended, "both have ended"
            )

            assert accepted.calls.count("ended") == outgoing.calls.count("ended") == 1

    play(scene)


def test_a_certificate_that_nobody_vouches_for_is_named_as_the_reason(made: Path) -> None:
    async def scene() -> None:
        there, here = Side(), Side(trusts=ssl.create_default_context())
        async with closing(here, there):
            address = by_name(await there.listen(offered(made)))
            with pytest.raises(PeerFailed) as caught:
                await here.connect(address)

            assert f"cannot connect to {address}: its TLS certificate is not trusted" in str(
                caught.value
            )
            assert "overlay.ca_file" in caught.value.remedy
            await async_wait_until(
                lambda: there.said("a TLS handshake failed"), "the listener says so, too"
            )

    play(scene)


def test_a_certificate_for_another_name_is_refused(made: Path) -> None:
    async def scene() -> None:
        there, here = Side(), Side(trusts=trusting(made))
        async with closing(here, there):
            with pytest.raises(PeerFailed, match="certificate is not trusted"):
                await here.connect(await there.listen(offered(made)))

    play(scene)


def test_a_peer_without_tls_is_named_with_the_setting(made: Path) -> None:
    async def answer_in_clear(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\0\0\0\5hello")
        writer.close()

    async def scene() -> None:
        here = Side(trusts=trusting(made))
        server = await asyncio.start_server(answer_in_clear, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with closing(here), server:
            with pytest.raises(PeerFailed, match="TLS failed") as caught:
                await here.connect(f"localhost:{port}")

        assert "overlay.tls = false" in caught.value.remedy

    play(scene)


def test_a_peer_that_does_not_answer_is_given_up(made: Path) -> None:
    async def scene() -> None:
        here = Side(OverlaySettings(connect_s=0.3), trusts=trusting(made))
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"localhost:{silent.getsockname()[1]}"
            async with closing(here):
                with pytest.raises(PeerFailed, match=r"no answer within 0\.3 s"):
                    await here.connect(address)

    play(scene)


def test_who_connects_in_clear_is_told_to_the_operator_with_the_setting(made: Path) -> None:
    async def scene() -> None:
        there, here = Side(), Side()
        async with closing(here, there):
            outgoing = await here.connect(await there.listen(offered(made)))
            outgoing.transport.write(b"\0\0\0\5hello")
            await async_wait_until(lambda: outgoing.has_ended, "it is refused")
            await async_wait_until(
                lambda: there.said("a TLS handshake failed"), "and that is in the log"
            )

            assert there.receivers == []

    play(scene)


def test_a_file_of_authorities_that_is_none_is_named_with_its_setting(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"overlay\.ca_file, .* cannot be read"):
        authorities_context("overlay.ca_file", str(tmp_path / "missing.pem"))
