"""Sinks, stores and dialects of another package work beside the built-in ones."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from served import Served, folder
from tocsin.archive.parquet_reader import read_range
from tocsin.archive.record import to_events
from tocsin.config import LogSettings
from tocsin.drivers.logger import WriteLog
from tocsin.drivers.plugins import DIALECTS, LOG_READERS, SINKS, STORES, Plugins
from tocsin.drivers.storage.stores import accept_losses, accept_the_clock
from tocsin.errors import BadSetting

ENTRY_POINTS = """\
[tocsin.sinks]
spool = tocsin_example:SPOOL
[tocsin.stores]
counted = tocsin_example:open_counted
[tocsin.log_readers]
counted = tocsin_example:read_counted
[tocsin.dialects]
lines = tocsin_example:open_lines
"""


def installed(site: Path, entry_points: str = ENTRY_POINTS) -> dict[str, str]:
    """The environment of a process for which the package is installed there."""
    shutil.copy(Path(__file__).with_name("tocsin_example.py"), site)
    metadata = site / "tocsin_example-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tocsin-example\nVersion: 1.0\n"
    )
    (metadata / "entry_points.txt").write_text(entry_points)
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, "EXAMPLE_SPOOL": str(site)}


@dataclass
class Example:
    broker: Served
    site: Path
    lines: str


@pytest.fixture(scope="module")
def example() -> Iterator[Example]:
    with folder() as parent:
        site = parent / "site"
        site.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            lines = f"127.0.0.1:{free.getsockname()[1]}"
        env = installed(site) | {
            "TOCSIN_LOG__STORE": "counted://events",
            "TOCSIN_ARCHIVE__ROLL_S": "0.2",
            "TOCSIN_ARCHIVE__FREE_BYTES_MIN": "1000",
            "TOCSIN_DIALECTS__LISTEN": f"lines={lines}",
        }
        broker = Served(parent / "data", env=env)
        try:
            yield Example(broker, site, lines)
        finally:
            assert broker.stop() == 0, broker.said()


def said_on_a_line(address: str, topic: str) -> str:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as lines:
        lines.sendall(f"{topic}\n".encode())
        return lines.makefile().readline().strip()


def wait_for(path: Path, count: int) -> list[str]:
    deadline = time.monotonic() + 10
    while not path.exists() or path.read_text().count("\n") < count:
        assert time.monotonic() < deadline, f"{path} has no {count} lines"
        time.sleep(0.01)
    return path.read_text().splitlines()


def test_a_dialect_a_store_and_a_sink_from_outside_carry_an_event_through(example: Example) -> None:
    asked = {"sink": "spool://radar"}
    status, body = example.broker.call("POST", "/subscriptions", asked)
    assert (status, body["state"]) == (201, "active"), body

    number = said_on_a_line(example.lines, "lead/ohio/radar")
    [line] = wait_for(example.site / "radar", 1)

    assert json.loads(line) == [int(number), "lead/ohio/radar"]
    assert (example.broker.directory / "events").read_text() == number
    assert not list(example.broker.directory.glob("log.sqlite*"))


def test_a_store_from_outside_that_other_processes_can_read_has_an_archive(
    example: Example,
) -> None:
    number = int(said_on_a_line(example.lines, "lead/ohio/archived"))
    archive = str(example.broker.directory / "archive")
    topics: dict[int, str] = {}
    deadline = time.monotonic() + 30
    while number not in topics:
        assert time.monotonic() < deadline, example.broker.said()
        time.sleep(0.1)
        batches = read_range(archive, through=2**62)
        topics = {each.seq: each.event.topic for batch in batches for each in to_events(batch)}

    assert topics[number] == "lead/ohio/archived"


def test_a_store_that_other_processes_cannot_read_says_that_it_has_no_archive(
    tmp_path: Path,
) -> None:
    broker = Served(tmp_path, env={"TOCSIN_LOG__STORE": "memory"})
    try:
        said = broker.said()
    finally:
        assert broker.stop() == 0, broker.said()

    assert "no archive is written: other processes cannot read this store" in said
    assert not (tmp_path / "archive").exists()


def test_the_error_for_an_unknown_scheme_names_that_of_another_package_too(
    example: Example,
) -> None:
    status, body = example.broker.call("POST", "/subscriptions", {"sink": "ftp://radar/"})

    assert status == 400
    assert "no sink has the scheme 'ftp'" in body["detail"]
    assert "gma, gmas, http, https, soap.tcp, spool" in body["remedy"]


def test_a_sink_of_another_package_refuses_what_it_cannot_do(example: Example) -> None:
    asked = {"sink": "spool://radar", "config": {"mode": "structured"}}

    status, body = example.broker.call("POST", "/subscriptions", asked)

    assert (status, body["code"]) == (400, "T301")


def refusal(site: Path, entry_points: str = ENTRY_POINTS, **settings: str) -> str:
    """What a broker that cannot start says."""
    data = ["--data", str(site / "data"), "--http", "127.0.0.1:0", "--frames", "off"]
    process = subprocess.run(
        [sys.executable, "-m", "tocsin", "serve", *data, "--soap-tcp", "off", "--link", "off"],
        env={**os.environ, **installed(site, entry_points), **settings},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 2, process.stderr
    return process.stderr


def test_a_store_that_is_not_there_stops_the_start_and_the_known_ones_are_named(
    tmp_path: Path,
) -> None:
    said = refusal(tmp_path, TOCSIN_LOG__STORE="postgres://db/events")

    assert "tocsin.stores has no 'postgres'" in said
    assert "counted, memory, sqlite" in said


def test_a_package_that_cannot_be_loaded_stops_the_start_and_is_named(tmp_path: Path) -> None:
    said = refusal(tmp_path, "[tocsin.sinks]\nspool = tocsin_example:NOWHERE\n")

    assert "tocsin_example:NOWHERE, registered as 'spool' of tocsin.sinks" in said


def test_no_package_takes_the_name_of_another() -> None:
    others = [EntryPoint("https", "tocsin_example:SPOOL", SINKS)]

    with pytest.raises(BadSetting, match="both register 'https'"):
        Plugins(SINKS, others)


@pytest.mark.parametrize("group", [SINKS, STORES, LOG_READERS, DIALECTS])
def test_the_built_in_ones_are_loaded_as_those_of_other_packages(group: str) -> None:
    ours = Plugins(group)

    assert all(ours.load(name) is not None for name in ours.names)
    with pytest.raises(BadSetting, match="has no 'other'"):
        ours.load("other")


def test_a_command_that_needs_no_plugins_looks_for_none() -> None:
    code = (
        "import sys; from tocsin.cli.main import main\n"
        "try: main(['pub', '--help'])\n"
        "except SystemExit: pass\n"
        "print('tocsin.drivers.plugins' in sys.modules, 'importlib.metadata' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout.splitlines()[-1] == "False False"


@pytest.mark.parametrize(
    ("accept", "flag"), [(accept_losses, "--accept-loss"), (accept_the_clock, "--accept-clock")]
)
def test_what_is_about_the_files_of_sqlite_is_refused_for_other_stores(
    accept: Callable[[LogSettings, WriteLog], None], flag: str, tmp_path: Path
) -> None:
    log = LogSettings(directory=str(tmp_path), store="counted:x")

    with pytest.raises(BadSetting, match=f"{flag} is for the store 'sqlite'"):
        accept(log, lambda *_, **__: None)

    assert list(tmp_path.iterdir()) == []
