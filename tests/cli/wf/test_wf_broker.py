"""`tocsin wf` against a real broker that was told of real-looking runs."""

from __future__ import annotations

import json
import os
import threading
import time
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from served import Served
from tocsin.client.tracking.spool import Spool
from tocsin.wire.blackboard.messages import Message

START = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10)
WAIT_S = 20.0

Tocsin = Callable[..., tuple[int, str, str]]


def when(second: float) -> str:
    return (START + timedelta(seconds=second)).isoformat(timespec="milliseconds")[:-6] + "Z"


class Teller:
    """Tells the broker of one run."""

    def __init__(self, broker: Served, run_id: str, workflow: str, *, begins_s: float = 0) -> None:
        self._broker = broker
        self._begins_s = begins_s
        self.run = run_id
        self.workflow = workflow
        self._count = 0

    def message(self, second: float, event: str, **pairs: str) -> Message:
        self._count += 1
        time = when(self._begins_s + second)
        pairs = {"RunId": self.run, event: time, **pairs}
        return Message(pairs, id=f"{self.run}/{self._count}", source="/t", time=time)

    def tell(self, second: float, event: str, **pairs: str) -> None:
        message = self.message(second, event, **pairs)
        body = {
            "id": message.id,
            "source": message.source,
            "time": message.time,
            "pairs": message.pairs,
        }
        status, answer = self._broker.call("POST", "/blackboard/messages", body)
        assert status == 202, answer

    def start(self, **pairs: str) -> None:
        named = {"WorkflowName": self.workflow, "EngineName": "python", "UserName": "ana"}
        self.tell(0, "WorkflowStarted", PlannedActivities="4", **named, **pairs)

    def activity(self, name: str, kind: str, start: float, end: float, **pairs: str) -> None:
        named = {"ActivityId": name, "ActivityType": kind}
        self.tell(start, "ActivityExecuting", **named)
        self.tell(end, "ActivitySucceeded", CpuSeconds="2.5", **named, **pairs)


@pytest.fixture
def tocsin(broker: Served, in_process: Tocsin) -> Tocsin:
    """Runs `tocsin wf` in this process; its exit code, output and errors."""
    return lambda *arguments: in_process("wf", *arguments, "--broker", broker.url)


@pytest.fixture
def workflow() -> str:
    return f"calling-{os.urandom(4).hex()}"


@pytest.fixture
def reported(broker: Served, workflow: str) -> tuple[str, str]:
    """A run that went well, and one that failed and took longer."""
    good = Teller(broker, f"g{os.urandom(6).hex()}", workflow)
    good.start(WorkflowVersion="v1", Parameters='{"depth": 30}')
    for n in range(3):
        good.activity(f"align-{n}", "align", n * 10, n * 10 + 10)
    good.activity("merge", "merge", 30, 50)
    good.tell(50, "WorkflowCompleted")
    bad = Teller(broker, f"b{os.urandom(6).hex()}", workflow, begins_s=60)
    bad.start(WorkflowVersion="v2", Parameters='{"depth": 60}')
    for n in range(3):
        bad.activity(f"align-{n}", "align", n * 20, n * 20 + 20)
    bad.tell(60, "ActivityExecuting", ActivityId="merge", ActivityType="merge")
    bad.tell(
        72,
        "ActivityFailed",
        ActivityId="merge",
        ActivityType="merge",
        ExitCode="1",
        ErrorMessage="no space left",
        CommandLine="samtools merge out.bam",
        LogTail="writing\nno space left on device\n",
    )
    bad.tell(73, "WorkflowTerminated")
    return good.run, bad.run


def wait_for(tocsin: Tocsin, name: str, state: str) -> dict[str, object]:
    """The run as soon as the monitor has come to it."""
    for _ in range(int(WAIT_S / 0.05)):
        code, out, words = tocsin("show", name, "--json")
        if code == 0 and json.loads(out)["state"] == state:
            found: dict[str, object] = json.loads(out)
            return found
        time.sleep(0.05)
    raise AssertionError(words or out)


def test_runs_are_listed_the_latest_first(
    tocsin: Tocsin, reported: tuple[str, str], workflow: str
) -> None:
    good, bad = reported
    wait_for(tocsin, bad, "failed")

    code, out, _ = tocsin("ls", "--workflow", workflow)

    rows = [line.split()[:3] for line in out.splitlines()[1:]]
    assert code == 0
    assert rows == [[bad, workflow, "failed"], [good, workflow, "completed"]]
    code, out, _ = tocsin("ls", "--workflow", workflow, "--state", "failed", "--json")
    assert [json.loads(line)["id"] for line in out.splitlines()] == [bad]


def test_one_run_is_found_by_the_beginning_of_its_id(
    tocsin: Tocsin, reported: tuple[str, str]
) -> None:
    good, bad = reported
    wait_for(tocsin, bad, "failed")

    code, out, words = tocsin("show", good[:9])
    assert code == 0
    assert "completed after 50s" in out
    assert "4 of 4 activities" in out
    assert "cpu seconds 10s" in out
    assert "align    3     3        0       0" in out
    code, out, words = tocsin("show", bad)
    assert "failed after 1m13s" in out
    assert f"tocsin wf failures {bad}" in words


def test_why_it_failed_is_reported_with_what_came_before(
    tocsin: Tocsin, reported: tuple[str, str]
) -> None:
    _, bad = reported
    wait_for(tocsin, bad, "failed")

    code, out, _ = tocsin("failures", bad, "--last", "3")

    assert code == 0
    assert out.startswith("merge, failed ")
    for line in (
        "  error      no space left\n",
        "  exit code  1\n",
        "  seen       never before\n",
        "    samtools merge out.bam\n",
        "    no space left on device\n",
        "ActivitySucceeded align align-2\n",
        "ActivityExecuting merge\n",
    ):
        assert line in out
    _, out, _ = tocsin("failures", bad, "--last", "3", "--json")
    assert len(json.loads(out)["before"]) == 3


def test_a_run_is_watched_to_its_end(tocsin: Tocsin, reported: tuple[str, str]) -> None:
    good, bad = reported
    wait_for(tocsin, bad, "failed")

    code, out, _ = tocsin("watch", good)
    assert code == 0
    assert "completed" in out
    assert "after 50s" in out
    assert tocsin("watch", bad)[0] == 1


def test_the_past_of_an_activity_is_known(
    tocsin: Tocsin, reported: tuple[str, str], workflow: str
) -> None:
    wait_for(tocsin, reported[1], "failed")

    code, out, _ = tocsin("history", "align", "--workflow", workflow)
    assert code == 0
    assert "ended       6 times\n" in out
    assert "mean        15s\n" in out
    assert "how long it took\n" in out
    code, out, _ = tocsin("history", "--workflow", workflow)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["type", "align", "merge"]


def test_two_runs_are_compared(tocsin: Tocsin, reported: tuple[str, str]) -> None:
    good, bad = reported
    wait_for(tocsin, bad, "failed")

    code, out, _ = tocsin("compare", good, bad)

    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert ["version", "v1", "v2"] in lines
    assert ["state", "completed", "failed"] in lines
    assert ["parameter", "depth", "30", "60"] in lines
    assert ["align", "3", "3", "0", "0", "10s", "20s", "2", "times", "as", "long"] in lines
    assert ["merge", "merge", "1", "no", "space", "left"] in lines


def test_what_changed_is_reported_a_run_and_of_a_workflow(
    broker: Served, tocsin: Tocsin, reported: tuple[str, str], workflow: str, tmp_path: Path
) -> None:
    _, bad = reported
    wait_for(tocsin, bad, "failed")
    file = tmp_path / "Snakefile"

    code, out, _ = tocsin("changes", bad)
    assert code == 0
    assert "parameter depth  30   60\n" in out
    file.write_text('rule align:\n    output: "a"\n    shell: "bwa > {output}"\n')
    assert tocsin("record", str(file), "--workflow", workflow)[0] == 0
    file.write_text('rule align:\n    output: "a"\n    shell: "bwa2 > {output}"\n')
    assert tocsin("record", str(file), "--workflow", workflow)[0] == 0
    code, out, words = tocsin("changes", workflow)
    assert (code, words) == (0, "2 versions\n")
    assert [line.split()[1] for line in out.splitlines() if "ActivityReplaced" in line]
    assert tocsin("changes", "nothing-of-the-kind")[0] == 5


def test_which_run_produced_a_file_is_reported_with_its_lineage(
    broker: Served, tocsin: Tocsin, workflow: str
) -> None:
    reported = Teller(broker, f"{workflow}-files", workflow)
    reported.start(WorkingDirectory=f"/data/{workflow}")
    reported.activity("s1", "sort", 1, 3, InputFile="raw.csv", OutputFile="sorted.csv")
    reported.activity("p1", "plot", 4, 6, InputFile="sorted.csv", OutputFile="out/plot.png")
    reported.tell(7, "WorkflowCompleted")

    code, out, _ = tocsin("files", f"{workflow}/out/plot.png")
    assert code == 0
    assert f"/data/{workflow}/out/plot.png" in out
    assert f"sorted.csv, written by sort s1 of {workflow}-files" in out
    assert "raw.csv, not written by any known run" in out

    code, out, _ = tocsin("files", f"{workflow}/sorted.csv", "--readers", "--json")
    first = json.loads(out.splitlines()[0])
    assert (code, first["activity"], first["role"]) == (0, "p1", "input")

    code, _, err = tocsin("files", f"{workflow}/nothing.txt")
    assert (code, "no known run wrote" in err) == (1, True)


def test_a_run_that_goes_on_has_a_time_left(
    broker: Served, tocsin: Tocsin, reported: tuple[str, str], workflow: str
) -> None:
    wait_for(tocsin, reported[1], "failed")
    now = Teller(broker, f"n{os.urandom(6).hex()}", workflow)
    now.start()
    now.activity("align-0", "align", 0, 10)
    now.tell(10, "ActivityExecuting", ActivityId="align-1", ActivityType="align")

    code, out, words = tocsin("eta", now.run)
    assert (code, words) == (0, "")
    assert "state      running for" in out
    assert "(80%: " in out
    left = json.loads(tocsin("eta", now.run, "--json")[1])
    assert left["low_s"] <= left["remaining_s"] <= left["high_s"]
    row = tocsin("ls", "--workflow", workflow, "--state", "running")[1].splitlines()[1]
    assert " to " in row
    code, out, _ = tocsin("eta", "--workflow", workflow)
    assert code == 0
    assert out.startswith("takes     ")


def test_what_waited_without_need_is_reported(
    broker: Served, tocsin: Tocsin, workflow: str
) -> None:
    run = Teller(broker, f"h{os.urandom(6).hex()}", workflow)
    run.start(PlannedCores="2")
    run.activity("check", "check", 0, 30, OutputFile="report")
    run.activity("align", "align", 30, 90, ParentActivity="check", InputFile="reads")
    run.tell(90, "WorkflowCompleted")

    code, out, _ = tocsin("hints", run.run)

    assert code == 0
    assert out.startswith("30s  align waited for check once, ")


def test_a_plan_is_estimated_from_the_past(
    tocsin: Tocsin, reported: tuple[str, str], workflow: str, tmp_path: Path
) -> None:
    wait_for(tocsin, reported[1], "failed")
    plan = tmp_path / "plan.json"
    tasks = [{"id": "a", "type": "align", "parents": []}, {"id": "m", "type": "merge"}]
    tasks[1]["parents"] = ["a"]
    plan.write_text(json.dumps({"workflow": workflow, "tasks": tasks}))

    code, out, words = tocsin("eta", "--plan", str(plan), "--json")

    assert (code, words) == (0, "")
    assert json.loads(out)["total_s"] > 0


def test_watching_follows_a_run_while_it_goes_on(
    broker: Served, tocsin: Tocsin, workflow: str
) -> None:
    now = Teller(broker, f"w{os.urandom(6).hex()}", workflow)
    now.start()

    def go_on() -> None:
        for n in range(4):
            time.sleep(0.3)
            now.activity(f"align-{n}", "align", n, n + 1)
        now.tell(5, "WorkflowCompleted")

    going = threading.Thread(target=go_on)
    going.start()
    code, out, _ = tocsin("watch", now.run, "--interval", "20ms", "-W", "30s", "--json")
    going.join()

    looks = [json.loads(line) for line in out.splitlines()]
    done = [look["activities"]["succeeded"] for look in looks]
    assert code == 0
    assert looks[0]["state"] == "running"
    assert looks[-1]["state"] == "completed"
    assert done == sorted(done)
    assert done[-1] == 4


def test_names_may_have_slashes_and_spaces(broker: Served, tocsin: Tocsin) -> None:
    name = f"nf-core/rna {os.urandom(4).hex()}"
    odd = Teller(broker, f"2026/ä b?{os.urandom(4).hex()}", name)
    odd.start()
    odd.activity("a/b c", "star/align", 0, 5)
    odd.tell(6, "WorkflowCompleted")

    assert wait_for(tocsin, odd.run, "completed")["workflow"] == name
    for arguments in (
        ("failures", odd.run),
        ("hints", odd.run),
        ("changes", odd.run),
        ("compare", odd.run, odd.run),
        ("history", "star/align", "--workflow", name),
        ("provenance", odd.run),
        ("eta", odd.run),
        ("eta", "--workflow", name),
    ):
        assert tocsin(*arguments)[0] == 0, arguments


@pytest.mark.parametrize("form", ["prov-json", "prov-n", "turtle", "crate"])
def test_provenance_comes_in_every_form(
    tocsin: Tocsin, reported: tuple[str, str], tmp_path: Path, form: str
) -> None:
    good, bad = reported
    wait_for(tocsin, bad, "failed")
    file = tmp_path / "run"

    code, _, words = tocsin("provenance", good, "--format", form, "-o", str(file))

    assert code == 0, words
    if form == "crate":
        assert "ro-crate-metadata.json" in zipfile.ZipFile(file).namelist()
        assert "not enough to run the workflow again" in words
        assert "the workflow's files: nobody sent them" in words
    else:
        assert "align" in file.read_text()


def test_what_a_run_left_behind_is_sent_once(
    broker: Served, tocsin: Tocsin, workflow: str, tmp_path: Path
) -> None:
    teller = Teller(broker, f"s{os.urandom(6).hex()}", workflow)
    spool = Spool(tmp_path, broker.url)
    started = teller.message(0, "WorkflowStarted", WorkflowName=workflow)
    spool.append([started, teller.message(9, "WorkflowCompleted")])
    spool.close()

    code, out, words = tocsin("send", str(tmp_path))
    assert (code, out) == (0, "")
    assert words == "2 messages sent from 1 file\n"
    assert wait_for(tocsin, teller.run, "completed")["duration_s"] == 9.0
    assert "no messages are spooled in" in tocsin("send", str(tmp_path))[2]
    assert tocsin("send", str(tmp_path / "none"))[0] == 2
