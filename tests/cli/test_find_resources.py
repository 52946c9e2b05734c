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
from tocsin.cli.find.resources import print_table
from tocsin.client import Resources
from tocsin.wire.api.resource_views import FoundResource

Tocsin = Callable[..., tuple[int, str, str]]


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


def test_what_a_static_resource_advertises_without_a_value_is_shown(
    tocsin: Tocsin, lab: str
) -> None:
    advertised = "[disk,>=,100],[available,>,8 a.m.],[available,<,3 p.m.]"
    tocsin("resource", "add", lab, "--advertise", advertised)

    _, table, _ = tocsin("find", "resources", "disk > 120 and available = '9:00'")
    _, line, _ = tocsin("find", "resources", "disk > 120 and available = '9:00'", "--json")
    tocsin("resource", "rm", lab)

    assert "  [disk >= 100] [available 08:00 to 15:00 UTC]  " in table
    assert json.loads(line)["ranges"] == {"disk": ">= 100", "available": "08:00 to 15:00 UTC"}


def found_at(broker: str) -> FoundResource:
    return FoundResource(
        id="node7",
        broker=broker,
        attributes={"cores": 4},
        ranges={},
        as_of="2026-11-18T18:30:00Z",
        kind=None,
        address=None,
        hops=0,
        round_trip_s=None,
    )


def test_resources_of_one_id_at_several_brokers_are_told_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table([found_at("51bb4b0b980faf08"), found_at("51bb4b0b98ffffff")])

    head, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert head[:3] == ["id", "broker", "kind"]
    assert [row[:2] for row in rows] == [["node7", "51bb4b0b980"], ["node7", "51bb4b0b98f"]]


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


def test_explain_says_of_static_resources_that_they_do_not_age(tocsin: Tocsin, lab: str) -> None:
    tocsin("resource", "add", lab, f"lab={lab}")

    _, _, words = tocsin("find", "resources", f"lab = {lab}", "--explain")

    assert "age: static resources are as they were when they were registered" in words


def test_an_empty_answer_that_was_shared_says_so_and_how_to_ask_again(
    tocsin: Tocsin, lab: str
) -> None:
    advertised = f"[lab,=,{lab}],[memory,<=,2]"
    tocsin("resource", "add", lab, "--model", "dynamic", "--advertise", advertised)
    find = ["find", "resources", "--model", "dynamic", f"lab = {lab}"]

    asked, shared = tocsin(*find), tocsin(*find)
    tocsin("resource", "set", lab, "memory=1")
    anew = tocsin(*find, "--max-age", "0")

    assert asked[2] == "no resource matches\n"
    assert shared[0] == 5
    assert "an earlier request's answer was used" in shared[2]
    assert "--max-age 0" in shared[2]
    assert anew[0] == 0


def test_the_first_by_an_attribute_come_in_order(tocsin: Tocsin, lab: str) -> None:
    for cores in (4, 64, 16):
        tocsin("resource", "add", f"{lab}-{cores}", f"lab={lab}", f"cores={cores}")

    order = ["--order-by", "cores desc", "--first", "2", "--json", "--explain"]
    _, out, words = tocsin("find", "resources", f"lab = {lab}", *order)

    assert [json.loads(line)["id"] for line in out.splitlines()] == [f"{lab}-64", f"{lab}-16"]
    assert "there are more: these are the first in that order" in words


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
        (["find", "resources", "a = 1", "--watch", "--timeout", "3s"], 2, "--timeout and --watch"),
        (["find", "resources", "a = 1", "--watch", "--first", "0"], 2, "--first is 0"),
        (["find", "resources", "a = 1", "--order-by", "a, b"], 1, "order_by"),
        (["resource", "rm", "nobody"], 5, "at another broker"),
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


def test_a_watch_ends_when_enough_were_found(broker: Served, tocsin: Tocsin, lab: str) -> None:
    tocsin("resource", "add", f"{lab}-1", f"lab={lab}")
    command = [sys.executable, "-m", "tocsin", "find", "resources", f"lab = {lab}", "--watch"]
    command += ["--first", "2", "--explain", "--broker", broker.url]
    watcher = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert watcher.stdout is not None
    first = watcher.stdout.readline()
    tocsin("resource", "add", f"{lab}-2", f"lab={lab}")
    out, words = watcher.communicate(timeout=20)

    assert first.startswith(f"added    {lab}-1  ")
    assert out.startswith(f"added    {lab}-2  ")
    assert watcher.returncode == 0
    lines = words.splitlines()
    assert lines[0].startswith("brokers that answered: 1 (")
    assert lines[1:] == [
        "cost: 0 messages between brokers",
        "shared: no; 1 resource at first, changes follow",
        "2 resources found",
    ]


def test_a_watch_says_what_the_first_answer_cost_though_nothing_matches(
    broker: Served, lab: str
) -> None:
    command = [sys.executable, "-m", "tocsin", "find", "resources", f"lab = {lab}", "--watch"]
    command += ["--model", "dynamic", "--explain", "--broker", broker.url]
    watcher = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert watcher.stderr is not None
    try:
        said = [watcher.stderr.readline() for _ in range(3)]
    finally:
        watcher.kill()
        watcher.wait()
        watcher.stderr.close()

    assert said[0].startswith("brokers that answered: ")
    assert said[2] == "shared: no; 0 resources at first, changes follow\n"


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
