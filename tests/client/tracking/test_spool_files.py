"""The files of the spool: cut anywhere they give what was whole, and one has them at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from served import Served, served
from tocsin.client.blackboard import Message
from tocsin.client.tracking import Outbox, spool_file
from tocsin.client.tracking.spool import (
    Spool,
    default_directory,
    failure_of,
    send_all,
    send_each,
)
from tocsin.errors import CannotReachBroker, SomeFailed

BROKER = "http://127.0.0.1:9"


def messages(*numbers: int) -> list[Message]:
    return [Message({"RunId": f"r{n}\n"}, id=str(n), source="/t") for n in numbers]


def written(directory: Path, *numbers: int) -> Path:
    file = spool_file.create(directory, BROKER, "left")
    file.append(messages(*numbers))
    file.close()
    return file.path


def read(path: Path) -> list[str]:
    file = spool_file.take(path)
    if file is None:
        return []
    ids: list[str] = []
    while file.has_more:
        front, place = file.front(2)
        ids += [message.id for message in front]
        file.release(place)
    file.close()
    return ids


@given(count=st.integers(0, 6), data=st.data())
def test_a_file_cut_anywhere_gives_the_messages_that_are_whole(
    count: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = spool_file.create(Path(directory), BROKER, "left")
        path.append(messages(*range(count)))
        whole = path.path.read_bytes()
        path.abandon()
        cut = data.draw(st.integers(0, len(whole)))
        path.path.write_bytes(whole[:cut])

        lines = max(0, whole[:cut].count(b"\n") - 1)
        assert read(path.path) == [str(n) for n in range(lines)]


def test_a_damaged_line_is_left_out_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path, 1, 2, 3)
    lines = path.read_bytes().split(b"\n")
    lines[2] = b'{"pairs": \xff\xfe'
    path.write_bytes(b"\n".join(lines))
    file = spool_file.take(path)
    assert file is not None

    front, place = file.front(100)
    file.release(place)

    assert [message.id for message in front] == ["1", "3"]
    assert file.damaged == 1
    assert not file.has_more


def test_what_was_sent_is_gone_and_a_file_with_nothing_in_it_too(tmp_path: Path) -> None:
    spool = Spool(tmp_path, BROKER)
    spool.append(messages(1, 2))
    front, place = spool.front()
    spool.release(place)
    assert not spool.has_more
    spool.append(messages(3))
    front, _ = spool.front()
    assert [message.id for message in front] == ["3"]
    spool.close()
    [left] = tmp_path.glob("*.spool")

    assert read(left) == ["3"]
    assert not left.exists()


def test_a_file_that_is_written_or_sent_is_nobody_elses(tmp_path: Path) -> None:
    spool = Spool(tmp_path, BROKER)
    spool.append(messages(1))
    [path] = tmp_path.glob("*.spool")
    script = f"""
from pathlib import Path
from tocsin.client.tracking import spool_file
print(spool_file.take(Path({str(path)!r})) is None)
"""

    def is_held() -> str:
        return subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.strip()

    held = is_held()
    spool.close()

    assert held == "True"
    assert is_held() == "False"


def test_the_spool_is_bounded_over_all_of_its_files(tmp_path: Path) -> None:
    size = written(tmp_path, *range(100)).stat().st_size
    spool = Spool(tmp_path, BROKER, bytes_max=size + 500)
    spool.append(messages(*range(20)))

    with pytest.raises(OSError, match="wait in"):
        spool.append(messages(20))

    spool.close()


def test_files_that_are_none_of_ours_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "strange.spool").write_text("not ours\n")
    (tmp_path / "notes.txt").write_text("mine\n")

    assert send_all(BROKER, tmp_path).busy == 1
    assert (tmp_path / "strange.spool").read_text() == "not ours\n"


def test_sending_to_where_nobody_is_says_so_and_keeps_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOCSIN_BROKER", raising=False)
    path = written(tmp_path, 1, 2)

    with pytest.raises(CannotReachBroker):
        send_all(None, tmp_path)

    assert read(path) == ["1", "2"]


def waiting(directory: Path, broker: str, *numbers: int) -> None:
    file = spool_file.create(directory, broker, f"left-{broker[-5:]}-{numbers[0]}")
    file.append(messages(*numbers))
    file.close()


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


def test_a_broker_that_is_named_gets_what_waits_for_any(
    broker: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting(tmp_path, BROKER, 1)
    monkeypatch.setenv("TOCSIN_BROKER", broker.url)

    assert send_all(None, tmp_path).files == 1

    waiting(tmp_path, BROKER, 2)
    monkeypatch.setenv("TOCSIN_BROKER", BROKER)

    assert send_all(broker.url, tmp_path).files == 1
    assert list(tmp_path.glob("*.spool")) == []


def test_a_broker_that_is_away_keeps_only_its_own_files_back(
    broker: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOCSIN_BROKER", raising=False)
    waiting(tmp_path, "gopher://nowhere", 1)
    for number in (2, 4):
        waiting(tmp_path, BROKER, number)
    for number in (3, 5):
        waiting(tmp_path, broker.url, number)

    counts, failures = send_each(None, tmp_path)

    assert (counts.files, counts.left) == (2, 3)
    assert failures.keys() == {"gopher://nowhere", BROKER}
    assert len(list(tmp_path.glob("*.spool"))) == 3
    failure = failure_of(counts, failures)
    assert isinstance(failure, SomeFailed)
    assert BROKER in failure.problem
    with pytest.raises(SomeFailed):
        send_all(None, tmp_path)


def test_the_command_goes_on_past_a_broker_that_is_away(broker: Served, tmp_path: Path) -> None:
    waiting(tmp_path, BROKER, 1)
    waiting(tmp_path, broker.url, 2)
    command = [sys.executable, "-m", "tocsin", "wf", "send", str(tmp_path)]
    env = {name: value for name, value in os.environ.items() if name != "TOCSIN_BROKER"}

    some = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    env["TOCSIN_BROKER"] = broker.url
    rest = subprocess.run([*command, "--json"], env=env, capture_output=True, text=True, check=True)

    assert some.returncode == SomeFailed.exit_code
    assert "1 file could not be sent" in some.stderr
    assert BROKER in some.stderr
    assert json.loads(rest.stdout)["files"] == 1


def test_the_usual_place_is_that_of_the_desktop_standard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_directory() == tmp_path / "tocsin" / "spool"
    with Outbox(BROKER, source="/t") as outbox:
        outbox.put(messages(1)[0])
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert len(list((tmp_path / "tocsin" / "spool").glob("*.spool"))) == 1
    assert default_directory() == tmp_path / "home" / ".local" / "state" / "tocsin" / "spool"
