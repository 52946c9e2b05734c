"""A real standalone Spark cluster on loopback: one master and some workers, each a process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

import tocsin
from tocsin.pipeline.spark.java import find_java

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
START_S = 60.0
WORKER_MIB = 1_200


def packed(directory: Path) -> Path:
    """The package as one file, as it is shipped to machines that do not have it installed."""
    source = Path(tocsin.__file__).parent
    target = directory / "tocsin-shipped.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(source.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, Path("tocsin") / path.relative_to(source))
    return target


def python_without_the_package(directory: Path) -> Path:
    """A Python that has what Tocsin needs, once it is told where that is, and not Tocsin itself."""
    target = directory / "python-alone"
    # Without its site, Python follows none of the links by which the package is installed here.
    target.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    target.chmod(0o755)
    return target


@contextmanager
def cluster(directory: Path, path: str, workers: int = 2) -> Iterator[str]:
    """The address of a master with so many workers, whose Python finds packages on that path. All
    of it ends with the block."""
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": path,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
    }
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        log = directory / f"{name}.log"
        with log.open("wb") as out:
            command = [str(SPARK_CLASS), *arguments]
            processes.append(
                subprocess.Popen(
                    command,
                    env=environment,
                    cwd=directory,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
            )
        return log

    try:
        master = start(
            "master",
            "org.apache.spark.deploy.master.Master",
            *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
        )
        url = _waited_for(master, r"Starting Spark master at (spark://\S+)")
        logs = [
            start(
                f"worker{number}",
                "org.apache.spark.deploy.worker.Worker",
                *("--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", f"{WORKER_MIB}m"),
                *("-d", str(directory / f"work{number}")),
                url,
            )
            for number in range(workers)
        ]
        for log in logs:
            _waited_for(log, r"(Successfully registered with master)")
        yield url
    finally:
        for process in reversed(processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _waited_for(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"{log.name} did not start: {log.read_text(errors='replace')[-2000:]}")
