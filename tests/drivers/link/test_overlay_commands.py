"""`tocsin overlay`, `status`, `doctor` and the metrics of brokers that are linked."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator

import pytest
from brokers import Brokers, box, brokers, id_of, overlay, until_reached, until_wanted

from served import Served
from tocsin.cli.main import run
from waiting import wait_until

NOBODY = "127.0.0.1:9"


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Served, Served]]:
    """Two brokers; the second wants something, and has a peer that is not there."""
    with brokers() as place:
        a = place.start("a")
        b = place.start("b", a.link, NOBODY)
        until_reached(a, b)
        box(b, "lead/**")
        until_wanted(a, "lead/**")
        wait_until(lambda: overlay(b)["peers"][1]["error"], "the other peer is tried")
        wait_until(lambda: overlay(b)["neighbours"][0]["round_trip_ms"], "a heartbeat comes back")
        yield a, b


def output_of(capsys: pytest.CaptureFixture[str], broker: Served, *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = run([*words, "--broker", broker.url])
    return code, capsys.readouterr().out


def test_overlay_shows_neighbours_and_why_a_peer_is_not_linked(
    pair: tuple[Served, Served], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair

    code, out = output_of(capsys, b, "overlay")

    assert code == 0
    assert re.search(rf"^{id_of(a)} +up +{a.link} +[0-9.]+ ms", out, re.MULTILINE)
    assert re.search(rf"^{a.link} +linked", out, re.MULTILINE)
    assert f"cannot connect to {NOBODY}: connection refused [T501]" in out
    assert "--link" in out


def test_overlay_shows_rows_of_the_tables_when_asked(
    pair: tuple[Served, Served], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair

    code, out = output_of(capsys, a, "overlay", "--rows", "1")

    assert code == 0
    assert "advertisements (SRT): 1 of 2" in out
    assert re.search(rf"^{id_of(b)} +topic lead/\*\* +{id_of(b)}", out, re.MULTILINE)
    assert "topic lead" not in output_of(capsys, a, "overlay")[1]
    _, out = output_of(capsys, b, "overlay", "--rows", "1")
    assert re.search(r" 1 since 20[0-9T:.-]+Z$", out, re.MULTILINE)


def test_overlay_in_json_is_what_the_api_says(
    pair: tuple[Served, Served], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = output_of(capsys, pair[0], "overlay", "--json", "--rows", "0")

    shown = json.loads(out)
    assert code == 0
    assert shown["subscriptions"] == []
    assert shown["subscriptions_total"] == 1
    assert shown["neighbours"][0]["since"].endswith("Z")
    assert pair[0].call("GET", "/overlay?rows=x")[0] == 400


def test_a_broker_without_links_says_how_to_get_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with brokers() as place:
        alone = place.start("alone")
        capsys.readouterr()

        assert run(["overlay", "--broker", alone.url]) == 0
        assert "--peer HOST:PORT" in capsys.readouterr().err
        assert run(["status", "--broker", alone.url]) == 0
        assert "no links to other brokers" in capsys.readouterr().out


def test_what_cannot_be_forgotten_is_an_error(
    pair: tuple[Served, Served], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair

    assert run(["overlay", "forget", id_of(b), "--broker", a.url]) != 0
    assert "T808" in capsys.readouterr().err
    assert run(["overlay", "forget", "nobody", "--broker", a.url]) == 5
    assert "T807" in capsys.readouterr().err
    assert run(["overlay", "forget", "--broker", a.url]) == 2


def test_status_and_doctor_have_a_line_about_links(
    pair: tuple[Served, Served], capsys: pytest.CaptureFixture[str]
) -> None:
    _, status = output_of(capsys, pair[1], "status")
    _, doctor = output_of(capsys, pair[1], "doctor")

    assert "1 of 1 neighbours up, 1 other broker reached, 1 peer not linked" in status
    assert f"peer: {pair[0].link} is linked" in doctor
    assert f"cannot connect to {NOBODY}: connection refused [T501]" in doctor


def test_doctor_names_a_neighbour_that_is_down_and_its_error_goes_when_it_is_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with brokers() as place:
        a = place.start("a")
        b = place.start("b", a.link)
        until_reached(a, b)
        b.kill()
        wait_until(lambda: overlay(a)["neighbours"][0]["state"] == "down", "it is gone")

        _, doctor = output_of(capsys, a, "doctor")
        error = overlay(a)["neighbours"][0]["error"]
        b.start()
        until_reached(a, b)

        assert f"neighbour: broker {id_of(b)} is down since 20" in doctor
        assert f"tocsin overlay forget {id_of(b)}" in doctor
        assert error is not None
        wait_until(lambda: overlay(a)["neighbours"][0]["error"] is None, "the link is up again")


def test_metrics_count_links_and_events(pair: tuple[Served, Served]) -> None:
    a, b = pair
    before = metrics(a)["tocsin_overlay_events_sent_total"]

    a.publish({"topic": "lead/x"}, {"topic": "other"}, {"topic": "lead/y"})
    wait_until(
        lambda: metrics(b)["tocsin_overlay_events_received_total"] == before + 2, "they arrive"
    )

    shown = metrics(a)
    assert shown["tocsin_overlay_events_sent_total"] == before + 2
    assert shown['tocsin_overlay_neighbours{state="up"}'] == 1
    assert shown['tocsin_overlay_table_rows{table="subscriptions"}'] == 1
    assert shown["tocsin_overlay_brokers"] == 1
    assert shown['tocsin_overlay_discovery_bytes{table="requests"}'] == 0
    assert shown['tocsin_overlay_discovery_bytes_max{table="requests"}'] == 64 << 20
    assert metrics(b)['tocsin_overlay_peers{state="linked"}'] == 1
    wait_until(
        lambda: metrics(a)[f'tocsin_overlay_lag{{neighbour="{id_of(b)}"}}'] == 0, "none is left"
    )


def metrics(broker: Served) -> dict[str, float]:
    with urllib.request.urlopen(f"{broker.url}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def test_resources_of_other_brokers_are_ordered_by_distance(place: Brokers) -> None:
    b = place.start("b")
    a, c = place.start("a", b.link), place.start("c", b.link)
    until_reached(a, b, c)
    for broker, name in (a, "near"), (c, "far"), (b, "between"):
        status, _ = broker.call("POST", "/resources", {"id": name, "attributes": {"disk": 320}})
        assert status == 201
    asked = {"request": "disk > 100", "order_by": "distance"}

    def found() -> list[tuple[str, int]]:
        resources = a.call("POST", "/discoveries", asked)[1]["resources"]
        return [(each["id"], each["hops"]) for each in resources]

    wait_until(lambda: len(found()) == 3, "all are advertised")
    assert found() == [("near", 0), ("between", 1), ("far", 2)]


@pytest.fixture
def place() -> Iterator[Brokers]:
    with brokers() as found:
        yield found
