"""What is in deploy/ fits the broker: its command lines start one, its alerts name its metrics."""

from __future__ import annotations

import configparser
import functools
import json
import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from served import Served, served

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ALERTS = (DEPLOY / "prometheus-alerts.yml").read_text()
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
OPERATORS = (ROOT / "docs" / "operators.md").read_text()
METRIC = re.compile(r"\btocsin_\w+")
RULES = [rule for group in yaml.safe_load(ALERTS)["groups"] for rule in group["rules"]]


def unit() -> dict[str, str]:
    """The section Service of the unit, the last value of each key."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "tocsin.service")
    return dict(parser["Service"])


def instruction(name: str) -> str:
    """What follows an instruction of the container file, the last one of its kind."""
    joined = CONTAINERFILE.replace("\\\n", " ")
    found: list[str] = re.findall(rf"^{name} (.+)$", joined, re.MULTILINE)
    return found[-1]


def elsewhere(command: list[str]) -> list[str]:
    """The flags of a command line without its directory and ports, which a test has its own of."""
    flags = iter(command)
    places = {"--data", "--http", "--frames", "--soap-tcp", "--link"}
    return [flag for flag in flags if flag not in places or not next(flags)]


@pytest.fixture(scope="module")
def broker_of_the_unit() -> Iterator[Served]:
    _program, command, *flags = shlex.split(unit()["ExecStart"])
    assert command == "serve"
    with served(*elsewhere(flags)) as broker:
        yield broker


@pytest.fixture(scope="module")
def metrics(broker_of_the_unit: Served) -> set[str]:
    """The name of every metric."""
    with urllib.request.urlopen(f"{broker_of_the_unit.url}/metrics", timeout=30) as answer:
        return set(re.findall(r"^# TYPE (\w+)", answer.read().decode(), re.MULTILINE))


def test_the_unit_starts_a_broker_that_writes_its_log_as_json(broker_of_the_unit: Served) -> None:
    first = broker_of_the_unit.said().splitlines()[0]

    assert json.loads(first)["level"] == "info"


def test_the_unit_keeps_its_data_where_it_may_write() -> None:
    service = unit()
    flags = shlex.split(service["ExecStart"])

    assert service["ProtectSystem"] == "strict"
    assert flags[flags.index("--data") + 1] == f"/var/lib/{service['StateDirectory']}"


@functools.cache
def known_flags(command: str) -> set[str]:
    """The flags that a command says it has."""
    shown = subprocess.run(
        [sys.executable, "-m", "tocsin", command, "--help"], capture_output=True, text=True
    )
    assert shown.returncode == 0, shown.stderr
    return set(re.findall(r"--[a-z-]+", shown.stdout.partition("options:")[2]))


def flags_of(words: list[str]) -> set[str]:
    return {word for word in words if word.startswith("--")}


def test_the_container_serves_as_a_user_of_its_own() -> None:
    assert not instruction("USER").startswith(("root", "0"))
    command, *words = json.loads(instruction("CMD"))

    assert command == "serve"
    assert flags_of(words)
    assert not flags_of(words) - known_flags("serve")


def test_every_command_of_the_page_for_operators_exists() -> None:
    lines = re.findall(r"^[$#] tocsin (.+)$", OPERATORS, re.MULTILINE)

    assert lines
    for line in lines:
        command, *words = shlex.split(line)
        assert not flags_of(words) - known_flags(command), line


def test_the_health_check_of_the_container_passes_and_fails(broker_of_the_unit: Served) -> None:
    check = json.loads(instruction("HEALTHCHECK").partition("CMD ")[2])
    program = [sys.executable, *check[1:]]
    alive = program[-1].replace("127.0.0.1:8400", broker_of_the_unit.address)
    dead = program[-1].replace("127.0.0.1:8400", "127.0.0.1:1")

    assert subprocess.run([*program[:-1], alive], capture_output=True).returncode == 0
    assert subprocess.run([*program[:-1], dead], capture_output=True).returncode != 0


def test_every_metric_of_the_alerts_and_of_the_page_exists(metrics: set[str]) -> None:
    named = {name for rule in RULES for name in METRIC.findall(rule["expr"])}

    assert named
    assert not named - metrics
    assert not set(METRIC.findall(OPERATORS)) - metrics


def test_every_alert_says_what_to_do_and_is_on_the_page_for_operators() -> None:
    assert not [rule for rule in RULES if not {"summary", "action"} <= set(rule["annotations"])]
    assert not [rule["alert"] for rule in RULES if rule["alert"] not in OPERATORS]
