"""`tocsin find resources` and `tocsin resource`, against a real broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from served import Served
from tocsin.cli.main import run
from tocsin.client import Resources

Tocsin = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tocsin(broker: Served, capsys: pytest.CaptureFixture[str]) -> Tocsin:
    """Runs a command in this process; its exit code, data and words."""

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([*arguments, "--broker", broker.url])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture
def lab() -> str:
    """An attribute's value that no other test uses."""
    return f"lab{os.urandom(4).hex()}"


def test_a_resource_is_added_found_and_withdrawn(tocsin: Tocsin, lab: str) -> None:
    added = tocsin("resource", "add", lab, f"lab={lab}", "disk=320", "--kind", "machine")
    found = tocsin("find", "resources", f"lab = {lab} and disk > 120")
    removed = tocsin("resource", "rm", lab)
    gone = tocsin("find", "resources", f"lab = {lab} and disk > 120")

    rows = [line.split() for line in found[1].splitlines()]
    assert added[:2] == (0, f"{lab}\n")
    assert found[0] == 0
    assert rows[0] == ["id", "kind", "address", "attributes", "hops", "age"]
    assert rows[1][:3] == [lab, "machine", "-"]
    assert {f"lab={lab}", "disk=320"} <= set(rows[1])
    assert found[2] == "1 resource\n"
    assert removed[0] == 0
    assert gone[:2] == (5, "")
    assert "no resource matches" in gone[2]


def test_values_of_a_dynamic_resource_are_set_and_asked_for(tocsin: Tocsin, lab: str) -> None:
    advertised = f"[lab,=,{lab}],[memory,<=,2],[disk,<=,320 GB]"
    tocsin("resource", "add", lab, "--model", "dynamic", "--advertise", advertised, "memory=1")

    code, _, words = tocsin("resource", "set", lab, "disk=200 GB", "memory=0.5")
    _, out, _ = tocsin("find", "resources", "--model", "dynamic", f"lab = {lab}", "--json")
    too_much = tocsin("resource", "set", lab, "memory=9")

    assert code == 0
    assert f"{lab}: memory=0.5 disk=200 GB; until" in words
    assert json.loads(out)["attributes"] == {
        "lab": lab,
        "memory": 0.5,
        "disk": {"value": 200, "unit": "GB"},
    }
    assert too_much[0] == 1
    assert "outside of what" in too_much[2]


def test_explain_says_who_answered_at_what_cost_and_how_old_it_is(tocsin: Tocsin, lab: str) -> None:
    tocsin("resource", "add", lab, f"lab={lab}")

    _, out, words = tocsin("find", "resources", f"lab = {lab}", "--explain", "--json")

    assert json.loads(out)["id"] == lab
    assert f"brokers that answered: 1 ({json.loads(out)['broker']})" in words
    assert "cost: 0 messages between brokers" in words
    assert "shared: no" in words
    assert "age: " in words


def test_the_first_by_an_attribute_come_in_order(tocsin: Tocsin, lab: str) -> None:
    for cores in (4, 64, 16):
        tocsin("resource", "add", f"{lab}-{cores}", f"lab={lab}", f"cores={cores}")

    order = ["--order-by", "cores desc", "--first", "2", "--json"]
    _, out, _ = tocsin("find", "resources", f"lab = {lab}", *order)

    assert [json.loads(line)["id"] for line in out.splitlines()] == [f"{lab}-64", f"{lab}-16"]


def test_resources_of_this_broker_are_listed(tocsin: Tocsin, lab: str) -> None:
    tocsin("resource", "add", lab, "cores=4", "--kind", lab, "--lease", "none")

    code, out, words = tocsin("resource", "ls", "--kind", lab)

    assert code == 0
    assert out.splitlines()[1].split() == [lab, "static", lab, "-", "cores=4", "-"]
    assert words == "1 resource\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["find", "resources", "disk > 5 and disk < 3"], 5, "no value fulfils"),
        (["find", "resources", "disk > Linux", "--watch"], 5, "texts have only ="),
        (["find", "resources", "disk >> 5"], 1, "disk >> 5\n       ^"),
        (["find", "resources", "a = 1", "--watch", "--first", "3"], 2, "--first and --watch"),
        (["find", "resources", "a = 1", "--order-by", "a, b"], 1, "order_by"),
        (["resource", "rm", "nobody"], 5, "no resource 'nobody'"),
        (["resource", "set", "nobody", "a=1"], 5, "no resource 'nobody'"),
        (["resource", "set", "nobody", "a"], 2, "is not NAME=VALUE"),
        (["resource", "add", "nobody"], 1, "advertisement is missing"),
    ],
)
def test_what_cannot_be_done_has_an_exit_code_and_a_reason(
    tocsin: Tocsin, arguments: list[str], code: int, words: str
) -> None:
    result = tocsin(*arguments)

    assert result[:2] == (code, "")
    assert words in result[2]


def test_a_watcher_sees_what_comes_changes_and_goes_until_it_is_interrupted(
    broker: Served, lab: str
) -> None:
    command = [sys.executable, "-m", "tocsin", "find", "resources", f"lab = {lab} and n > 1"]
    command += ["--model", "dynamic", "--watch", "--json", "--broker", broker.url]
    with Resources(broker.url) as resources:
        resources.register(
            lab, f"[lab,=,{lab}],[n,<=,9]", model="dynamic", attributes={"n": 2}, kind="machine"
        )
        watcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert watcher.stdout is not None
        try:
            seen = [json.loads(watcher.stdout.readline())]
            resources.update(lab, {"n": 5})
            seen.append(json.loads(watcher.stdout.readline()))
            resources.update(lab, {"n": 0})
            seen.append(json.loads(watcher.stdout.readline()))
            watcher.send_signal(signal.SIGINT)

            assert watcher.wait(10) == 130
        finally:
            watcher.kill()
            watcher.wait()
            watcher.stdout.close()
    assert [each["change"] for each in seen] == ["added", "changed", "removed"]
    assert [each["attributes"]["n"] for each in seen] == [2, 5, 5]
