"""Mailboxes on a real disk: bounded, expiring, with a count of what they dropped."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from served import ROOT
from tocsin.access.session import anonymous
from tocsin.config import load
from tocsin.drivers.logger import Logger
from tocsin.drivers.soap_services import MailboxNode
from tocsin.errors import DataDirectoryInUse, NoSuchBox
from tocsin.services.mailbox.box_reader import Taken
from tocsin.services.mailbox.mailboxes import Mailboxes
from tocsin.wire.msgbox.content import BoxMessage, box_message

PATIENCE_S = 20.0
OWNER = anonymous("soap")


def run(
    directory: Path, script: Callable[[Mailboxes], Awaitable[None]], **settings: object
) -> None:
    """Mailboxes from their opening to their close."""

    async def main() -> None:
        flags = {"log.directory": str(directory), **{f"boxes.{k}": v for k, v in settings.items()}}
        node = MailboxNode(load(flags, {})[0], Logger())
        try:
            await asyncio.wait_for(script(node.mailboxes), PATIENCE_S)
        finally:
            await node.close()

    uvloop.run(main())


_last: dict[str, Taken] = {}


async def take(mailboxes: Mailboxes, box: str, count: int) -> Taken:
    """As a client with one connection: the next question shows that the last answer arrived."""
    if box in _last:
        _last.pop(box).receipt.arrived()
    taken = _last[box] = await mailboxes.take(OWNER, box, count)
    return taken


def numbered(*numbers: int) -> list[BoxMessage]:
    return [BoxMessage(b"<m>%d</m>" % number) for number in numbers]


def bodies(taken: Taken) -> list[bytes]:
    return [box_message(stored.event).body for stored in taken.messages]


def expected(*numbers: int) -> list[bytes]:
    return [message.body for message in numbered(*numbers)]


def test_nothing_is_on_disk_before_the_first_box(tmp_path: Path) -> None:
    async def script(mailboxes: Mailboxes) -> None:
        assert not (tmp_path / "boxes").exists()
        with pytest.raises(NoSuchBox):
            await take(mailboxes, "nobody", 10)

    run(tmp_path, script)


def test_what_the_last_answer_handed_out_comes_again_after_a_restart_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    box = ""

    async def first(mailboxes: Mailboxes) -> None:
        nonlocal box
        box = await mailboxes.create(OWNER)
        await mailboxes.store(OWNER, box, numbered(1, 2, 3))
        assert bodies(await take(mailboxes, box, 1)) == expected(1)
        assert bodies(await take(mailboxes, box, 1)) == expected(2)

    async def second(mailboxes: Mailboxes) -> None:
        assert bodies(await take(mailboxes, box, 10)) == expected(2, 3)

    run(tmp_path, first)
    _last.clear()
    run(tmp_path, second)


def test_two_mailbox_stores_on_one_directory_would_spoil_each_other(tmp_path: Path) -> None:
    async def script(mailboxes: Mailboxes) -> None:
        await mailboxes.create(OWNER)
        settings, _ = load({"log.directory": str(tmp_path)}, {})
        with pytest.raises(DataDirectoryInUse):
            MailboxNode(settings, Logger())

    run(tmp_path, script)


STORES_AND_SAYS_SO = """
import asyncio, sys
import uvloop
from tocsin.config import load
from tocsin.access.session import anonymous
from tocsin.drivers.soap_services import MailboxNode
from tocsin.drivers.logger import Logger
from tocsin.wire.msgbox.content import BoxMessage

async def main():
    mailboxes = MailboxNode(load({"log.directory": sys.argv[1]}, {})[0], Logger()).mailboxes
    OWNER = anonymous("soap")
    box = await mailboxes.create(OWNER)
    print(box, flush=True)
    for number in range(10**9):
        await mailboxes.store(OWNER, box, [BoxMessage(b"<m>%d</m>" % number)])
        print(number, flush=True)

uvloop.run(main())
"""


def test_every_message_that_was_acknowledged_is_there_after_kill_9(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STORES_AND_SAYS_SO, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    box = process.stdout.readline().strip()
    for _ in range(50):
        process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    reported = process.stdout.read().split()  # what it said between the last line and the blow
    process.wait()
    process.stdout.close()
    acknowledged = 50 + len([line for line in reported if line.isdigit()])

    async def script(mailboxes: Mailboxes) -> None:
        found = bodies(await take(mailboxes, box, 1_000))
        assert found[:acknowledged] == expected(*range(acknowledged))
        assert len(found) <= acknowledged + 1

    run(tmp_path, script)
