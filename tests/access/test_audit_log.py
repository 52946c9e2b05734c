"""The audit log on a disk: its chain of hashes, its files, kills and a full disk."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from small_disk import small_disk
from tocsin.access.audit.lines import Fault, read_line
from tocsin.access.audit.query import AuditQuery
from tocsin.access.audit.records import AuditRecord, Kind
from tocsin.access.decision import Action, Decision
from tocsin.access.session import anonymous
from tocsin.drivers.access import audit_log as audit_log_module
from tocsin.drivers.access.audit_files import END, AuditFiles, FileOptions, audit_files
from tocsin.drivers.access.audit_log import AuditLog
from tocsin.drivers.access.audit_reader import read_page, verify_files
from tocsin.event.instant import NS_PER_S
from tocsin.event.topic import TopicPattern


def record(number: int, resource: str = "status", action: str = "read") -> AuditRecord:
    return AuditRecord(
        time_ns=number * NS_PER_S,
        kind=Kind.DECISION,
        principal=f"p{number % 2}",
        action=action,
        resource=resource,
        allowed=False,
        reason="no rule",
    )


def write(directory: Path, count: int, first: int = 1, **options: float) -> None:
    """As one process that ends well."""
    files = AuditFiles(directory, FileOptions(**options))  # type: ignore[arg-type]
    for number in range(first, first + count):
        files.append([record(number)], sync=False)
    files.close()


def numbers(directory: Path, **asked: object) -> list[int]:
    query = AuditQuery(**{"limit": 1_000, **asked})  # type: ignore[arg-type]
    return [line.n for line in read_page(directory, query).lines]


def only_file(directory: Path) -> Path:
    (path,) = audit_files(directory)
    return path


def test_what_is_written_is_read_again_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    write(tmp_path / "audit", 5)

    assert numbers(tmp_path / "audit") == [1, 2, 3, 4, 5]
    assert verify_files(tmp_path / "audit") == (5, [])
    assert stat.S_IMODE((tmp_path / "audit").stat().st_mode) == 0o700
    for name in os.listdir(tmp_path / "audit"):
        assert stat.S_IMODE((tmp_path / "audit" / name).stat().st_mode) == 0o600


def test_each_line_has_the_hash_of_the_one_before_over_files_and_starts(tmp_path: Path) -> None:
    write(tmp_path, 20, file_bytes_max=500)
    write(tmp_path, 20, 21, file_bytes_max=500)

    assert len(audit_files(tmp_path)) > 5
    assert verify_files(tmp_path) == (40, [])
    assert numbers(tmp_path) == list(range(1, 41))


def changed(data: bytes) -> bytes:
    return data.replace(b'"principal":"p1"', b'"principal":"px"', 1)


def without(number: int) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        return b"".join(lines[: number - 1] + lines[number:])

    return change


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (changed, 2),  # of line 1, seen by the next
        (without(3), 3),
        (without(1), 1),
        (without(10), 9),
        (lambda data: data + data.splitlines(keepends=True)[-1], 11),
        (lambda data: data[:-5], 10),
        (lambda data: data[: len(data) // 2], 5),
        (lambda data: data.replace(b"no rule", b"\xff\xfe rule", 1), 1),
    ],
)
def test_damage_and_cuts_are_noticed_and_named(
    damage: Callable[[bytes], bytes], line: int, tmp_path: Path
) -> None:
    write(tmp_path, 10)
    path = only_file(tmp_path)
    path.write_bytes(damage(path.read_bytes()))

    _, faults = verify_files(tmp_path)

    assert all(each.file == path.name and each.is_damage for each in faults)
    assert line in {each.line for each in faults}


def test_a_file_that_is_missing_between_others_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, 40, file_bytes_max=1_000)
    files = audit_files(tmp_path)
    files[2].unlink()

    _, faults = verify_files(tmp_path)

    assert [(each.file, each.line) for each in faults] == [(files[3].name, 1)]


def test_any_one_byte_that_is_changed_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, 4)
    path = only_file(tmp_path)
    whole = path.read_bytes()

    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert verify_files(tmp_path)[1], place


def test_a_line_that_was_cut_by_a_kill_is_noticed_and_the_log_goes_on(tmp_path: Path) -> None:
    write(tmp_path, 5)
    path = only_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])

    write(tmp_path, 3, 6)
    lines, faults = verify_files(tmp_path)

    assert lines == 5 + 1 + 3
    assert [(each.line, each.is_damage) for each in faults] == [(5, False)]
    kinds = [line.kind for line in read_page(tmp_path, AuditQuery()).lines]
    assert kinds == ["decision"] * 4 + ["cut"] + ["decision"] * 3


def test_a_line_whose_end_alone_is_missing_is_whole(tmp_path: Path) -> None:
    write(tmp_path, 5)
    path = only_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])

    write(tmp_path, 1, 6)

    assert verify_files(tmp_path) == (6, [])


def test_lines_that_are_missing_at_the_end_are_noticed_also_when_it_has_gone_on(
    tmp_path: Path,
) -> None:
    write(tmp_path, 5)
    path = only_file(tmp_path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    _, before = verify_files(tmp_path)

    write(tmp_path, 2, 6)
    _, after = verify_files(tmp_path)

    assert [each.line for each in before] == [3]
    assert [(each.line, each.is_damage) for each in after] == [(4, True)]
    assert "2 lines are missing after 3" in after[0].problem


def test_the_oldest_files_go_and_what_is_left_is_whole(tmp_path: Path) -> None:
    write(tmp_path, 200, file_bytes_max=1_000, files_max=5)

    files = audit_files(tmp_path)
    assert len(files) == 5
    assert sum(path.stat().st_size for path in files) < 5 * 1_300
    assert numbers(tmp_path)[-1] == 200
    assert verify_files(tmp_path)[1] == []


def test_a_file_that_is_old_is_closed(tmp_path: Path) -> None:
    files = AuditFiles(tmp_path, FileOptions(file_age_s=100.0))
    files.append([record(1)], sync=False)
    files.append([record(2)], sync=False)
    files._begun_s -= 101
    files.append([record(3)], sync=True)
    files.close()

    assert [path.stem for path in audit_files(tmp_path)] == ["000000000001", "000000000003"]
    assert verify_files(tmp_path) == (3, [])


def test_a_file_that_somebody_moved_away_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "moved").mkdir()
    directory = tmp_path / "audit"
    files = AuditFiles(directory, FileOptions())
    files.append([record(1)], sync=False)
    first = only_file(directory)
    first.rename(tmp_path / "moved" / first.name)
    files.append([record(2)], sync=False)
    files.close()

    assert [path.stem for path in audit_files(directory)] == ["000000000002"]
    assert verify_files(directory) == (1, [])


def test_what_is_asked_for_is_found_in_pages(tmp_path: Path) -> None:
    write(tmp_path, 50, file_bytes_max=1_000)

    assert numbers(tmp_path, principal="p1")[:3] == [1, 3, 5]
    assert numbers(tmp_path, limit=3) == [48, 49, 50]
    assert numbers(tmp_path, after=10, limit=4) == [11, 12, 13, 14]
    assert numbers(tmp_path, action="publish") == []
    assert numbers(tmp_path, since="1970-01-01T00:00:49.000Z") == [49, 50]
    assert numbers(tmp_path, until="1970-01-01T00:00:03.000Z") == [1, 2]
    page = read_page(tmp_path, AuditQuery(after=0, limit=2, principal="p0"))
    assert ([line.n for line in page.lines], page.is_last) == ([2, 4], False)
    assert read_page(tmp_path, AuditQuery(after=50)).is_last


def test_what_is_about_a_topic_is_found_whatever_was_asked_for(tmp_path: Path) -> None:
    files = AuditFiles(tmp_path, FileOptions())
    about = [
        record(1, "lead/ohio/radar", "publish"),
        record(2, "lead/ohio/**", "publish"),
        record(3, "other/x", "publish"),
        record(4, "filter/topic lead/*/radar and load5 > 3", "subscribe"),
        record(5, "filter/topic other/**", "subscribe"),
        record(6, "filter/everything", "subscribe"),
        record(7, "topic/lead/ohio/radar"),
        record(8, "status"),
    ]
    files.append(about, sync=False)
    files.close()

    wanted = TopicPattern.parse("lead/ohio/radar")
    assert numbers(tmp_path, topic=wanted) == [1, 2, 4, 6, 7]
    assert numbers(tmp_path, topic=TopicPattern.parse("other/**")) == [3, 5, 6]


def run(script: Callable[[], object]) -> None:
    asyncio.run(script())  # type: ignore[arg-type]


def refusal(number: int) -> Decision:
    return Decision(anonymous("http", "192.0.2.1:5"), Action.READ, f"run/{number}", False, "no")


def test_a_full_disk_stops_nothing_and_is_said_and_then_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setattr(audit_log_module, "WAITING_MAX", 50)

    async def script() -> None:
        with small_disk(1) as place:
            log = AuditLog(place, lambda _, message, **__: said.append(message), flush_s=0.01)
            log.start()
            log.decided(refusal(1))
            assert (await log.page(AuditQuery())).lines[-1].resource == "run/1"
            filler = place / "filler"
            with suppress(OSError), filler.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
            for number in range(100):
                log.changed(anonymous("http"), f"access/token/{number}", "x" * 400)
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)

            assert "the audit log cannot be written" in said
            assert "No space left" in log.complaints()[0]
            lost = log.lost
            assert lost >= 40
            filler.unlink()
            await asyncio.sleep(0.1)

            assert log.complaints() == []
            assert said[-1] == "the audit log is written again"
            lines = (await log.page(AuditQuery(limit=1_000))).lines
            assert sum(line.count for line in lines if line.kind == "lost") == lost
            assert (await log.verify())[1] == []
            await log.close()

    run(script)


def test_a_directory_that_cannot_be_made_is_a_complaint_and_no_failure(tmp_path: Path) -> None:
    async def script() -> None:
        (tmp_path / "audit").write_text("in the way")
        log = AuditLog(tmp_path, lambda *_, **__: None, flush_s=0.01)
        log.start()
        await asyncio.sleep(0.05)

        assert "cannot be written" in log.complaints()[0]
        (tmp_path / "audit").unlink()
        await asyncio.sleep(0.1)

        assert log.complaints() == []
        await log.close()

    run(script)


def test_what_was_decided_last_is_written_when_the_broker_stops(tmp_path: Path) -> None:
    async def script() -> None:
        log = AuditLog(tmp_path, lambda *_, **__: None, flush_s=60)
        log.start()
        log.decided(refusal(1))
        log.published(anonymous("http", "192.0.2.1:5"), "a/b/c", "rule/1", 7)
        await log.close()

    run(script)
    lines = read_page(tmp_path / "audit", AuditQuery()).lines

    assert [(line.kind, line.resource, line.count) for line in lines] == [
        ("begin", "", 1),
        ("decision", "run/1", 1),
        ("decision", "a/b/**", 7),
    ]


def test_a_record_is_json_with_the_fields_that_the_page_names(tmp_path: Path) -> None:
    write(tmp_path, 1)
    line = only_file(tmp_path).read_bytes()

    assert json.loads(line) == {
        "n": 1,
        "time": "1970-01-01T00:00:01.000Z",
        "kind": "decision",
        "principal": "p1",
        "action": "read",
        "resource": "status",
        "decision": "refused",
        "reason": "no rule",
        "before": "0" * 64,
    }
    assert read_line(b"nothing") is None
    assert (tmp_path / END).exists()
    assert Fault("a", 1, "b").is_damage
