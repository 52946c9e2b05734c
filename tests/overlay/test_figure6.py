"""Figure 6 of paper 001: seven brokers, three resources, and D2 that shares the answer of D1."""

from __future__ import annotations

from overlay.network import Network
from tocsin.wire.link.discovery_messages import Discover, Results

EDGES = [("A", "C"), ("B", "C"), ("C", "D"), ("D", "F"), ("D", "E"), ("E", "G")]


def figure6() -> Network:
    network = Network(EDGES)
    for broker, resource in (("A", "R1"), ("F", "R2"), ("G", "R3")):
        network.register(broker, resource, "[disk,<=,320]", {"disk": 200})
    network.settle()
    network.discover("E", "D1", "[disk,>,40]")
    network.settle()
    network.discover("B", "D2", "[disk,>,50]")
    network.settle()
    return network


def test_every_broker_has_the_tables_of_the_figure() -> None:
    network = figure6()

    tables = {name: core.tables() for name, core in network.cores.items()}

    assert {name: table["SrdSubList"] for name, table in tables.items()} == {
        "A": ["D1"],
        "B": ["D2"],
        "C": ["D1"],
        "D": ["D1"],
        "E": ["D1"],
        "F": ["D1"],
        "G": ["D1"],
    }
    caches = {name: table["ResourceCacheMap"] for name, table in tables.items()}
    assert {
        name: {request: sorted(found) for request, found in cache.items()}
        for name, cache in caches.items()
        if isinstance(cache, dict) and cache
    } == {"B": {"D2": ["R1", "R2", "R3"]}, "E": {"D1": ["R1", "R2", "R3"]}}
    assert {
        name: table["SubWaitingListMap"]
        for name, table in tables.items()
        if table["SubWaitingListMap"]
    } == {"C": {"D1": ["D2"]}, "D": {"D1": ["D2"]}, "E": {"D1": ["D2"]}}


def test_both_requests_find_all_three_and_say_how() -> None:
    network = figure6()

    assert network.found("D1") == network.found("D2") == ["R1", "R2", "R3"]
    assert not network.finished["D1"].shared
    assert network.finished["D2"].shared
    assert network.finished["D2"].brokers == ("A", "F", "G")
    assert network.finished["D2"].oldest_ns < network.finished_at["D1"]


def test_d2_goes_to_the_host_of_d1_and_nowhere_else() -> None:
    network = figure6()

    way = [(sent.sender, sent.receiver) for sent in network.sent(Discover)]
    back = [
        (sent.sender, sent.receiver)
        for sent in network.sent(Results)
        if isinstance(sent.message, Results) and sent.message.request_id == "D2"
    ]

    assert [hop for hop in way if hop[0] in "B"] == [("B", "C")]
    assert way[-3:] == [("B", "C"), ("C", "D"), ("D", "E")]
    assert back == [("E", "D"), ("D", "C"), ("C", "B")]  # one package
    assert network.finished["D2"].messages == 3 + 3 + 3  # requests, results, end markers


def test_a_request_that_is_never_shared_asks_every_broker() -> None:
    network = figure6()
    network.discover("B", "D3", "[disk,>,60]", max_age_ns=0)
    network.settle()

    assert network.found("D3") == ["R1", "R2", "R3"]
    assert not network.finished["D3"].shared
    assert network.finished["D3"].oldest_ns >= network.finished_at["D2"]
