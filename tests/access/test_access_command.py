"""`tocsin access`: rights of tokens as the API has them, and rules and tokens that are over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from served import ROOT, Served, served

PAST, FUTURE = "2020-01-01T00:00:00.000Z", "2199-01-01T00:00:00.000Z"
SETTINGS = f"""
[auth]
mode = "required"

[[access]]
principal = "ann"
action = "publish"
topic = "lead/**"
expires = "{PAST}"

[[access]]
principal = "ann"
action = "read"
topic = "lead/**"
expires = "{FUTURE}"

[[access]]
principal = "ann"
action = "subscribe"
topic = "lead/**"
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = tmp_path_factory.mktemp("settings") / "tocsin.toml"
    settings.write_text(SETTINGS)
    with served("--config", str(settings)) as running:
        yield running


def access(broker: Served, *words: str) -> subprocess.CompletedProcess[str]:
    signed_in = ("--broker", broker.url, "--token-file", str(broker.directory / "admin.token"))
    return subprocess.run(
        [sys.executable, "-m", "tocsin", "access", *words, *signed_in],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
        cwd=ROOT,
        check=False,
        timeout=60,
    )


def shown(broker: Served, *words: str) -> Any:
    found = access(broker, *words, "--json")
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_a_rule_that_is_over_is_marked(broker: Served) -> None:
    rules = shown(broker, "ls")["rules"]

    assert [each.get("expired", False) for each in rules] == [True, False, False]
    rows = access(broker, "ls").stdout.splitlines()
    over = [row for row in rows if "expired" in row]
    assert over == [row for row in rows if PAST in row]
    assert len(over) == 1
    why = access(broker, "why", "ann", "publish", "lead/a")
    assert why.stdout.startswith("not allowed")


def test_a_rule_of_the_api_is_marked_when_its_time_is_over(broker: Served) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    rule = shown(broker, "allow", "bob", "read", "lead/**", "--expires", soon)["id"]

    def is_over() -> bool:
        return next(each for each in shown(broker, "ls")["rules"] if each["id"] == rule).get(
            "expired", False
        )

    while not is_over():
        assert datetime.now(UTC) < datetime.fromisoformat(soon) + timedelta(seconds=10)
    assert datetime.now(UTC) >= datetime.fromisoformat(soon)


def test_a_token_that_is_over_is_marked(broker: Served) -> None:
    made = shown(broker, "token", "carol", "--expires", "PT0.01S")

    listed = {each["id"]: each for each in shown(broker, "tokens")["tokens"]}

    assert listed[made["id"]]["expired"]
    assert [each.get("expired", False) for each in listed.values()].count(True) == 1
    row = next(row for row in access(broker, "tokens").stdout.splitlines() if made["id"] in row)
    assert "expired" in row


def test_each_right_of_a_token_has_what_follows_it(broker: Served) -> None:
    rights = ("--right", "publish,subscribe:lead/**", "--filter", "load5 < 90", "--withheld")
    rights += ("--right", "read", "--resource", "run/*", "--right-expires", FUTURE)
    rights += ("--right", "manage:ops/**", "--expires", "PT1H")

    made = shown(broker, "token", "carol", *rights)

    assert made["rights"] == [
        {
            "action": ["publish", "subscribe"],
            "topic": "lead/**",
            "filter": "load5 < 90",
            "withheld": True,
        },
        {"action": "read", "resource": "run/*", "expires": FUTURE},
        {"action": "manage", "topic": "ops/**"},
    ]
    row = next(row for row in access(broker, "tokens").stdout.splitlines() if made["id"] in row)
    assert "publish,subscribe lead/** where load5 < 90; read run/*" in row
    allowed = [
        access(broker, "check", "carol", *asked, "--token", made["id"]).returncode
        for asked in (("publish", "lead/a"), ("read", "--resource", "run/r1"), ("read", "lead/a"))
    ]
    assert allowed == [0, 0, 4]


@pytest.mark.parametrize(
    "option", [("--filter", "a < 1"), ("--resource", "run/*"), ("--withheld",)]
)
def test_what_belongs_to_a_right_comes_behind_it(broker: Served, option: tuple[str, ...]) -> None:
    found = access(broker, "token", "carol", *option, "--right", "read")

    assert found.returncode == 2
    assert f"{option[0]} belongs to the --right before it" in found.stderr
    assert "token" not in found.stdout


def test_a_right_about_events_and_a_resource_is_refused(broker: Served) -> None:
    before = shown(broker, "tokens")

    found = access(broker, "token", "carol", "--right", "read:lead/**", "--resource", "run/*")

    assert found.returncode == 1
    assert "about a resource or about events, and not about both" in found.stderr
    assert shown(broker, "tokens") == before


def test_the_help_has_an_example_of_each(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "tocsin", "access", "token", "--help"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
        timeout=60,
    )

    usage = found.stdout.split("usage:")[0]
    assert all(each in usage for each in ("--filter", "--resource", "--right "))
