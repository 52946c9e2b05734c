"""What the documents show is what happens: every block of the README runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from served import ROOT
from tocsin.cli.pages import PAGES

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.S)
CONSOLE = [body for language, body in BLOCKS if language == "console"]
PYTHON = [body for language, body in BLOCKS if language == "python"]
BIN = Path(sys.executable).parent


def commands(block: str) -> list[str]:
    """The lines that start with a dollar sign, each with those that it goes on to."""
    joined = block.replace("\\\n", " ")
    return [line[2:] for line in joined.splitlines() if line.startswith("$ ")]


@pytest.fixture(scope="module")
def reader_env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A reader's shell: the command on the path, a port that is free, an empty directory."""
    with socket.socket() as probe, socket.socket() as other:
        probe.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        port, frames = probe.getsockname()[1], other.getsockname()[1]
    return {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(tmp_path_factory.mktemp("home")),
        "PWD_FOR_TEST": str(tmp_path_factory.mktemp("reader")),
        "PORT_FOR_TEST": str(port),
        "TOCSIN_HTTP__ADDRESS": f"127.0.0.1:{port}",
        "FRAMES_FOR_TEST": str(frames),
        "TOCSIN_FRAMES__ADDRESS": f"127.0.0.1:{frames}",
        "TOCSIN_OVERLAY__ADDRESS": "127.0.0.1:0",
        "TOCSIN_SOAP_TCP__ADDRESS": "127.0.0.1:0",
        "TOCSIN_BROKER": f"http://127.0.0.1:{port}",
    }


def shell(line: str, env: dict[str, str]) -> subprocess.Popen[str]:
    here = line.replace("127.0.0.1:8400", f"127.0.0.1:{env['PORT_FOR_TEST']}")
    here = here.replace("127.0.0.1:8401", f"127.0.0.1:{env['FRAMES_FOR_TEST']}")
    return subprocess.Popen(
        ["bash", "-c", f"exec {here.removesuffix('&').strip()}"],
        cwd=env["PWD_FOR_TEST"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def output_of(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=30)
    return out


def wait_for_port(env: dict[str, str]) -> None:
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", int(env["PORT_FOR_TEST"])), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the broker of the README never came up")


@pytest.fixture(scope="module")
def readme_broker(reader_env: dict[str, str]) -> Iterator[dict[str, str]]:
    """The broker that the README starts."""
    [serve] = commands(CONSOLE[1])
    process = shell(serve, reader_env)
    try:
        wait_for_port(reader_env)
        yield reader_env
    finally:
        process.send_signal(signal.SIGTERM)
        output_of(process)
        assert process.returncode == 0


def test_the_first_block_is_the_two_commands_and_make_knows_them() -> None:
    lines = [line.split("#")[0].strip() for line in commands(CONSOLE[0])]
    assert lines == ["make demo", "make test"]
    for line in lines:
        dry = subprocess.run([*line.split(), "-n"], cwd=ROOT, capture_output=True, check=False)
        assert dry.returncode == 0, dry.stderr


def test_the_first_commands_work_pasted_as_one_block(
    reader_env: dict[str, str], tmp_path: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {
        **reader_env,
        "TOCSIN_HTTP__ADDRESS": f"127.0.0.1:{port}",
        "TOCSIN_FRAMES__ADDRESS": "127.0.0.1:0",
        "TOCSIN_OVERLAY__ADDRESS": "127.0.0.1:0",
        "TOCSIN_BROKER": f"http://127.0.0.1:{port}",
    }
    env["TOCSIN_BROKER_WAIT_S"] = "40"  # for a machine that has much else to do
    lines = [*commands(CONSOLE[1]), *commands(CONSOLE[2])]

    pasted = subprocess.run(
        ["bash"],
        input="\n".join([*lines, "wait %2", "kill %1", "wait %1"]),
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert pasted.returncode == 0, pasted.stderr
    assert "T601" not in pasted.stderr
    assert "lead/ohio/radar" in pasted.stdout
    assert "lead/ohio/gauge" in pasted.stdout


def test_a_broker_that_never_comes_is_told_after_the_wait(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {**os.environ, "TOCSIN_BROKER": f"http://127.0.0.1:{port}", "TOCSIN_BROKER_WAIT_S": "0.5"}
    command = [str(BIN / "tocsin"), "pub", "a/b", "1"]

    failed = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30)
    env["TOCSIN_BROKER_WAIT_S"] = "long"
    refused = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30)

    assert failed.returncode == 3
    assert "waited 0.5 s for it" in failed.stderr
    assert refused.returncode == 2
    assert "TOCSIN_BROKER_WAIT_S is 'long'" in refused.stderr


def test_thirty_seconds_with_the_command(readme_broker: dict[str, str]) -> None:
    script = "\n".join(["set -e", *commands(CONSOLE[2]), "wait $!"])
    pasted = shell(f"bash -c {shlex.quote(script)}", readme_broker)

    seen = output_of(pasted)

    assert pasted.returncode == 0, seen
    assert "lead/ohio/radar" in seen
    assert "lead/ohio/gauge" in seen


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_same_with_curl(readme_broker: dict[str, str]) -> None:
    publish, query, stream = commands(CONSOLE[3])

    assert "202 Accepted" in output_of(shell(publish, readme_broker))
    assert '"load5": 7' in output_of(shell(query, readme_broker))
    assert "data: {" in output_of(shell(stream, readme_broker))


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_this_host_tells_about_itself(readme_broker: dict[str, str]) -> None:
    agent, follow, find, query = commands(CONSOLE[5])
    monitor = shell(agent.replace("agent", "agent --listen 127.0.0.1:0", 1), readme_broker)
    try:
        followed = output_of(shell(f"bash -c {shlex.quote(follow)}", readme_broker))
        assert followed.count("UptimeCPULoad Load1=") == 2, followed
        assert "agent" in output_of(shell(find, readme_broker))
        assert "<Load5>" in output_of(shell(query, readme_broker))
    finally:
        monitor.send_signal(signal.SIGTERM)
        assert monitor.returncode in (None, 0), output_of(monitor)
        output_of(monitor)


def test_a_machine_is_registered_and_found(readme_broker: dict[str, str]) -> None:
    add, find = commands(CONSOLE[6])

    assert output_of(shell(add, readme_broker)).strip() == "node7"
    found = output_of(shell(find, readme_broker))
    assert "node7" in found
    assert "cost: 0 messages" in found


def test_a_workflow_tells_what_it_does(readme_broker: dict[str, str]) -> None:
    reported = subprocess.run([sys.executable, "-c", PYTHON[0]], env=readme_broker, check=False)
    assert reported.returncode == 0
    runs, run, estimate = (output_of(shell(each, readme_broker)) for each in commands(CONSOLE[7]))

    assert "forecast" in runs
    assert "completed" in runs
    assert "member" in run
    assert "takes" in estimate


def test_two_lines_to_publish_and_three_to_consume(readme_broker: dict[str, str]) -> None:
    publish, consume = PYTHON[1:]
    assert len(publish.strip().splitlines()) == 2
    assert len(consume.strip().splitlines()) == 3

    def start(code: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-u", "-c", code], env=readme_broker, stdout=subprocess.PIPE, text=True
        )

    assert output_of(start(publish)) == ""
    consumer = start(consume)
    assert consumer.stdout is not None
    assert "lead/ohio/radar {'load5': 7" in consumer.stdout.readline()
    consumer.kill()
    output_of(consumer)


def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert not [link for link in links if "//" not in link and not (ROOT / link).exists()]


def test_the_readme_stays_short() -> None:
    prose = re.sub(r"```.*?```", "", README, flags=re.S)
    assert len(prose.split()) < 750


@pytest.mark.parametrize("name", sorted(PAGES))
def test_what_is_made_from_the_code_is_up_to_date(name: str) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text()

    assert page == PAGES[name](), f"stale: python -m tocsin.cli.pages {name} > docs/{name}.md"


def test_every_link_in_the_documents_leads_somewhere() -> None:
    for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "ARCHITECTURE.md"]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert "//" in link or (page.parent / link).exists(), f"{page}: {link}"


def test_every_module_that_the_documents_name_is_there() -> None:
    modules = [str(path) for path in ROOT.rglob("*.py") if ".venv" not in path.parts]
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = {
        (page.name, name)
        for page in pages
        for name in re.findall(r"`((?:\w+/)+\w+\.py)`", page.read_text())
    }

    assert named
    assert not {(page, name) for page, name in named if not _ends_with(name, modules)}


def _ends_with(name: str, modules: list[str]) -> bool:
    return any(each.endswith(f"/{name}") for each in modules)


def test_every_decision_has_a_number_of_its_own_and_says_it() -> None:
    decisions = sorted((ROOT / "docs" / "adr").glob("*.md"))
    numbers = [int(path.name[:4]) for path in decisions]
    assert numbers == list(range(1, len(numbers) + 1))
    for number, path in zip(numbers, decisions, strict=True):
        assert re.match(rf"# 0*{number}\b", path.read_text()), path.name
