"""`tocsin run` with real processes: the command goes on as if nobody looked, and is told of."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from served import Served
from tocsin.integrations.command.jobs import job_of
from tocsin.integrations.command.reporter import name_of

NOWHERE = "http://127.0.0.1:9"
TOCSIN = (sys.executable, "-m", "tocsin", "run")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    found = Served(tmp_path_factory.mktemp("run") / "data")
    yield found
    found.stop()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("TOCSIN_")}
    return {**kept, "XDG_STATE_HOME": str(tmp_path / "state"), "TOCSIN_BROKER": NOWHERE}


def tocsin_run(
    environment: dict[str, str], *arguments: str, broker: str = NOWHERE, **more: Any
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*TOCSIN, *arguments],
        env={**environment, "TOCSIN_BROKER": broker},
        capture_output=True,
        timeout=60,
        check=False,
        **more,
    )


def shown(broker: Served, run_id: str, rest: str = "") -> dict[str, Any]:
    status, answer = broker.call("GET", f"/runs/{quote(run_id, safe='')}{rest}")
    assert status == 200, answer
    found: dict[str, Any] = answer
    return found


def test_a_command_is_reported_with_its_start_its_resources_its_output_and_its_end(
    broker: Served, environment: dict[str, str], tmp_path: Path
) -> None:
    given = tmp_path / "given.txt"
    given.write_bytes(b"x" * 1_000)
    made = tmp_path / "made.txt"
    script = f"head -c 500 {given} > {made}; echo to see; echo to mind >&2; exit 3"
    named = ("--workflow", "w", "--activity", "cut", "--run", "told", "--parameter", "depth=7")
    files = ("--input", str(given), "--output", str(made))
    slurm = {**environment, "SLURM_JOB_ID": "4711"}

    done = tocsin_run(slurm, *named, *files, "--", "sh", "-c", script, broker=broker.url)

    assert (done.returncode, done.stdout, done.stderr) == (3, b"to see\n", b"to mind\n")
    run = shown(broker, "told")
    assert (run["state"], run["workflow"], run["exit_code"]) == ("failed", "w", 3)
    assert (run["parameters"], run["command"]) == ({"depth": "7"}, f"sh -c '{script}'")
    [failure] = shown(broker, "told", "/failures")["failures"]
    assert (failure["type"], failure["exit_code"], failure["job"]) == ("cut", 3, "slurm 4711")
    assert {"to see", "to mind"} <= set(failure["log"].splitlines())
    assert (failure["input_bytes"], failure["output_bytes"]) == (1_000, 500)
    assert failure["resources"]["MemoryPeak"] > 100_000
    assert "CpuSeconds" in failure["resources"]
    _, found = broker.call("GET", f"/files?name={made}")
    assert [each["run"] for each in found["files"]] == ["told"]


def test_what_the_command_uses_is_reported_while_it_runs(
    broker: Served, environment: dict[str, str]
) -> None:
    done = tocsin_run(environment, "--run", "busy", "--", "sleep", "3", broker=broker.url)

    assert done.returncode == 0
    run = shown(broker, "busy")
    assert (run["state"], run["progress"]) == ("completed", 1.0)
    assert 2.9 < run["duration_s"] < 30
    events = shown(broker, "busy", "/events")["events"]
    assert any("MemoryRss" in each["pairs"] for each in events)


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("true",), 0, b""),
        (("sh", "-c", "exit 42"), 42, b""),
        (("sh", "-c", "kill -USR1 $$"), -signal.SIGUSR1, b""),
        (("sh", "-c", "kill -KILL $$"), -signal.SIGKILL, b""),
        (("/no/such/command",), 127, b"tocsin run: /no/such/command: command not found\n"),
        (("/etc/passwd",), 126, b"tocsin run: /etc/passwd: permission denied\n"),
    ],
)
def test_the_exit_code_or_the_signal_is_that_of_the_command_without_a_broker_too(
    command: tuple[str, ...], code: int, words: bytes, environment: dict[str, str]
) -> None:
    done = tocsin_run(environment, "--quiet", "--", *command)

    assert (done.returncode, done.stderr) == (code, words)


def test_without_a_broker_a_word_is_said_and_everything_is_sent_later(
    broker: Served, environment: dict[str, str]
) -> None:
    done = tocsin_run(environment, "--run", "kept", "--", "echo", "out")

    assert (done.returncode, done.stdout) == (0, b"out\n")
    assert done.stderr.count(b"\n") == 1
    assert b"tocsin wf send" in done.stderr
    again = {**environment, "TOCSIN_BROKER": broker.url}
    subprocess.run([sys.executable, "-m", "tocsin", "wf", "send"], env=again, check=True)
    assert shown(broker, "kept")["state"] == "completed"


def test_a_broker_that_is_killed_meanwhile_changes_nothing_for_the_command(
    environment: dict[str, str], tmp_path: Path
) -> None:
    short_lived = Served(tmp_path / "data")
    script = f"kill -9 {short_lived.pid}; sleep 0.3; echo went on; exit 5"

    done = tocsin_run(environment, "--", "sh", "-c", script, broker=short_lived.url)

    short_lived.kill()
    assert (done.returncode, done.stdout) == (5, b"went on\n")


def test_output_of_any_kind_and_size_passes_through_unchanged(
    broker: Served, environment: dict[str, str]
) -> None:
    lines = ("import os", "for _ in range(64):", "    os.write(1, bytes(range(256)) * 4096)")
    script = "\n".join([*lines, "os.write(1, b'the end')"])

    done = tocsin_run(
        environment, "--run", "huge", "--", sys.executable, "-c", script, broker=broker.url
    )

    assert done.returncode == 0
    assert done.stdout == bytes(range(256)) * 4096 * 64 + b"the end"
    [step] = shown(broker, "huge", "/activities")["activities"]
    assert step["log"].endswith("the end")
    assert len(step["log"]) <= 4_096


def test_output_comes_as_it_is_written_and_not_at_the_end(environment: dict[str, str]) -> None:
    script = "echo first; read wait; echo second"
    running = subprocess.Popen(
        [*TOCSIN, "-q", "--", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert running.stdout is not None

    assert running.stdout.readline() == b"first\n"
    assert running.communicate(b"\n", timeout=30)[0] == b"second\n"


def test_the_end_of_output_that_goes_to_a_file_is_read_from_the_file(
    broker: Served, environment: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "job.out"
    log.write_text("of an earlier job\n")
    with log.open("ab") as file:
        subprocess.run(
            [*TOCSIN, "--run", "filed", "--", "sh", "-c", "echo one; echo two >&2; echo three"],
            env={**environment, "TOCSIN_BROKER": broker.url},
            stdout=file,
            stderr=file,
            check=True,
            timeout=60,
        )

    assert log.read_text() == "of an earlier job\none\ntwo\nthree\n"
    [step] = shown(broker, "filed", "/activities")["activities"]
    assert step["log"] == "one\ntwo\nthree\n"


def test_at_a_terminal_the_command_has_a_terminal(environment: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [*TOCSIN, "-q", "--", "sh", "-c", "test -t 1 && test -t 2 && echo a terminal"],
        stdout=theirs,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)

    assert running.wait(30) == 0
    assert b"a terminal" in os.read(ours, 1_000)
    os.close(ours)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2])
def test_signals_reach_the_command_and_it_may_handle_them(
    number: signal.Signals, environment: dict[str, str]
) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got {name}; exit 9' {name}; echo ready; while :; do sleep 0.05; done"
    running = subprocess.Popen(
        [*TOCSIN, "-q", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        env=environment,
        # Whoever runs these tests may ignore it (nohup), and a shell cannot trap what is ignored.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    assert running.stdout is not None
    assert running.stdout.readline() == b"ready\n"

    running.send_signal(number)

    assert running.communicate(timeout=30)[0] == f"got {name}\n".encode()
    assert running.returncode == 9


def test_a_command_that_a_signal_ends_was_aborted(
    broker: Served, environment: dict[str, str]
) -> None:
    running = subprocess.Popen(
        [*TOCSIN, "--run", "aborted", "--", "sh", "-c", "echo ready; exec sleep 60"],
        stdout=subprocess.PIPE,
        env={**environment, "TOCSIN_BROKER": broker.url},
    )
    assert running.stdout is not None
    running.stdout.readline()

    running.terminate()

    assert running.wait(30) == -signal.SIGTERM
    assert shown(broker, "aborted")["state"] == "aborted"
    running.stdout.close()


def test_a_command_that_is_stopped_goes_on_when_it_is_let(environment: dict[str, str]) -> None:
    running = subprocess.Popen(
        [*TOCSIN, "-q", "--", "sh", "-c", "echo $$; read wait; echo on"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        process_group=0,  # ours may be orphaned, and the system stops nobody in such a group
    )
    assert running.stdout is not None
    child = int(running.stdout.readline())

    running.send_signal(signal.SIGTSTP)
    assert _becomes(running.pid, "T")
    assert _becomes(child, "T")
    running.send_signal(signal.SIGCONT)

    assert running.communicate(b"\n", timeout=30)[0] == b"on\n"
    assert running.returncode == 0


def _becomes(pid: int, state: str) -> bool:
    until_s = time.monotonic() + 20
    while time.monotonic() < until_s:
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == state:
            return True
        time.sleep(0.02)
    return False


def test_a_command_inside_another_is_an_activity_of_its_run(
    broker: Served, environment: dict[str, str]
) -> None:
    inner = " ".join([*TOCSIN, "--activity", "inner", "--", "true"])

    done = tocsin_run(environment, "--run", "outer", "--", "sh", "-c", inner, broker=broker.url)

    assert (done.returncode, done.stderr) == (0, b"")
    run = shown(broker, "outer")
    assert (run["state"], run["reused"]) == ("completed", None)
    assert run["types"] == {"inner": {"succeeded": 1}, "sh": {"succeeded": 1}}


def test_a_process_that_is_left_behind_is_not_waited_for(environment: dict[str, str]) -> None:
    began_s = time.monotonic()

    done = tocsin_run(environment, "--", "sh", "-c", "sleep 30 & echo done")

    assert (done.returncode, done.stdout) == (0, b"done\n")
    assert time.monotonic() - began_s < 20
    assert b"left behind" in done.stderr


def test_the_job_is_found_in_the_environment_of_the_batch_system(tmp_path: Path) -> None:
    ad = tmp_path / ".job.ad"
    ad.write_text('Owner = "ana"\nClusterId = 12\nProcId = 3\n')

    assert job_of({"SLURM_JOB_ID": "9"}) == "slurm 9"
    arrayed = {"SLURM_JOB_ID": "11", "SLURM_ARRAY_JOB_ID": "9", "SLURM_ARRAY_TASK_ID": "0"}
    assert job_of(arrayed) == "slurm 9_0"
    assert job_of({"PBS_JOBID": "5.head"}) == "pbs 5.head"
    assert job_of({"LSB_JOBID": "7", "LSB_JOBINDEX": "0"}) == "lsf 7"
    assert job_of({"LSB_JOBID": "7", "LSB_JOBINDEX": "2"}) == "lsf 7_2"
    assert job_of({"JOB_ID": "8", "SGE_ROOT": "/sge"}) == "sge 8"
    assert job_of({"_CONDOR_JOB_AD": str(ad)}) == "htcondor 12.3"
    assert job_of({"_CONDOR_JOB_AD": "/no/such"}) == job_of({"JOB_ID": "8"}) == ""


def test_a_command_is_called_by_its_script() -> None:
    assert name_of(["/usr/bin/python3.11", "-u", "fit.py", "7"]) == "fit.py"
    assert name_of(["bash", "steps.sh"]) == "steps.sh"
    assert name_of(["python", "-c", "pass"]) == "python"
    assert name_of(["/opt/bin/cdo", "merge"]) == "cdo"


def test_a_missing_command_is_an_error_in_one_sentence(environment: dict[str, str]) -> None:
    done = tocsin_run(environment, "--workflow", "w")

    assert done.returncode == 2
    assert b"no command is given" in done.stderr


def test_with_json_the_end_is_one_line_on_standard_error(
    broker: Served, environment: dict[str, str]
) -> None:
    script = "echo out; exit 4"
    reported = tocsin_run(
        environment, "--json", "--run", "j", "--", "sh", "-c", script, broker=broker.url
    )
    nobody = tocsin_run(environment, "--json", "--run", "k", "--", "sh", "-c", script)

    for done, is_reported in ((reported, True), (nobody, False)):
        end = json.loads(done.stderr)
        assert (done.returncode, done.stdout) == (4, b"out\n")
        assert (end["exit_code"], end["signal"], end["reported"]) == (4, None, is_reported)
        assert 0 <= end["duration_s"] < 60
    assert json.loads(reported.stderr)["run"] == "j"
