"""Snakemake, Parsl and Dask report to a broker that wants them to sign in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from served import Served, served
from tocsin.cli.rest import Rest
from tocsin.client.transport.address import broker_address
from tocsin.credentials.lookup import VARIABLES

RUN_S = 120.0

SNAKEFILE = """
rule all:
    input: "made"
rule make:
    output: "made"
    shell: "echo ${{TOCSIN_TOKEN:-}} > {output}"
"""
PARSL = """
import sys, parsl
from parsl.config import Config
from parsl.executors import ThreadPoolExecutor
from tocsin.integrations.parsl import TocsinMonitoring

@parsl.python_app
def one():
    return 1

def main():
    monitoring = TocsinMonitoring(sys.argv[1], token_file=sys.argv[2] or None, spool="spool")
    with parsl.load(Config(executors=[ThreadPoolExecutor()], monitoring=monitoring)):
        assert one().result() == 1

if __name__ == "__main__":
    main()
"""
DASK = """
import sys
from distributed import Client, LocalCluster
from tocsin.integrations.dask import TocsinPlugin

def main():
    plugin = TocsinPlugin(
        "signed", broker=sys.argv[1], token_file=sys.argv[2] or None, spool="spool"
    )
    cluster = LocalCluster(1, processes=False, dashboard_address=None)
    with cluster, Client(cluster) as client:
        client.register_plugin(plugin)
        assert client.submit(lambda: 1).result() == 1

if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served(env={"TOCSIN_AUTH__MODE": "required"}) as running:
        yield running


def runs(broker: Served) -> list[str]:
    address = broker_address(broker.url, token_file=str(broker.directory / "admin.token"))
    with Rest(address) as rest:
        return [each["id"] for each in rest.get("/runs")["runs"]]


def environment(directory: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    home = {"XDG_CONFIG_HOME": str(directory / "config"), "XDG_STATE_HOME": str(directory / "s")}
    return {**kept, **home, "PATH": path}


def finish(directory: Path, command: list[str], **more: str) -> str:
    done = subprocess.run(
        command, cwd=directory, env={**environment(directory), **more}, timeout=RUN_S,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(("engine", "program"), [("parsl", PARSL), ("distributed", DASK)])
def test_plug_ins_sign_in_by_a_file(
    broker: Served, tmp_path: Path, engine: str, program: str
) -> None:
    pytest.importorskip(engine)
    script = tmp_path / "program.py"
    script.write_text(program)
    token_file = str(broker.directory / "admin.token")
    before = len(runs(broker))

    finish(tmp_path, [sys.executable, str(script), broker.url, ""])
    assert len(runs(broker)) == before, "nobody had signed in"
    said = finish(tmp_path, [sys.executable, str(script), broker.url, token_file])

    assert len(runs(broker)) > before
    assert_nowhere(broker, tmp_path, said)


def test_so_does_snakemake_by_a_file_or_the_environment(broker: Served, tmp_path: Path) -> None:
    pytest.importorskip("snakemake")
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    token_file = broker.directory / "admin.token"
    before = len(runs(broker))
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--logger", "tocsin", "-F"]
    command += ["--logger-tocsin-broker", broker.url, "--logger-tocsin-spool", "spool"]

    said = finish(tmp_path, [*command, "--logger-tocsin-token-file", str(token_file)])
    assert len(runs(broker)) == before + 1
    said += finish(tmp_path, command, TOCSIN_TOKEN=token_file.read_text().strip())
    assert len(runs(broker)) == before + 2
    (tmp_path / "made").unlink()  # where the workflow itself has put it

    assert_nowhere(broker, tmp_path, said)


def assert_nowhere(broker: Served, directory: Path, said: str) -> None:
    token = (broker.directory / "admin.token").read_text().strip()
    assert token not in said
    for folder in (directory, broker.directory):
        found = [
            path
            for path in folder.rglob("*")
            if path.is_file() and path.name != "admin.token" and token.encode() in path.read_bytes()
        ]
        assert found == []
