"""The four models of paper 001: leases, temporal availability, what continuous requests get."""

from __future__ import annotations

import pytest

from overlay.network import MS, Network, S
from tocsin.errors import BadDiscovery, NoSuchResource
from tocsin.event.value import Quantity
from tocsin.overlay.discovery.effects import Change
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.discovery.requests import ModelType, parse_registration, parse_request
from tocsin.wire.link.discovery_messages import Advertise, Cancel, Discover, Results, Update

PATH = [("A", "B"), ("B", "C"), ("B", "D")]
LINUX = "[system,=,Linux],[memory,<=,2],[disk,<=,320]"
STATIC, DYNAMIC = ModelType.STATIC, ModelType.DYNAMIC
STATIC_CONTINUOUS = ModelType.STATIC_CONTINUOUS
DYNAMIC_CONTINUOUS = ModelType.DYNAMIC_CONTINUOUS
ADDED, CHANGED, REMOVED = Change.ADDED, Change.CHANGED, Change.REMOVED


def test_a_static_request_is_answered_by_the_clients_own_broker() -> None:
    network = Network(PATH)
    network.register("A", "R", LINUX, model=STATIC)
    network.settle()
    before = len(network.trace)

    network.discover("C", "Q", "[memory,>,1]", STATIC)

    (found,) = network.answers["Q"]
    assert (found.id, found.broker, found.hops) == ("R", "A", 2)
    assert found.attributes == {"system": "Linux", "memory": 2, "disk": 320}
    assert network.finished["Q"].brokers == ("C",)
    assert network.finished["Q"].messages == 0
    assert len(network.trace) == before


def test_a_static_request_meets_what_is_advertised_and_a_dynamic_one_what_is_so_now() -> None:
    """A23: `memory < 1` and an advertisement of `memory <= 2` meet, whatever there is of it."""
    network = Network(PATH)
    network.register("A", "static", LINUX, model=STATIC)
    network.register("A", "much", LINUX, {"memory": 2})
    network.register("A", "little", LINUX, {"memory": 0})
    network.settle()

    network.discover("C", "Q1", "[memory,<,1]", STATIC)
    network.discover("C", "Q2", "[memory,<,1]", DYNAMIC)
    network.settle()

    assert network.found("Q1") == ["static"]
    assert network.found("Q2") == ["little"]


def test_a_static_resource_that_was_found_is_found_as_it_is_now() -> None:
    network = Network(PATH)
    network.register("A", "R", LINUX, model=STATIC)
    network.settle()
    network.discover("C", "before", "[memory,>,1]", STATIC)

    network.register("A", "R", "[system,=,Linux],[memory,<=,4]", model=STATIC)
    network.settle()
    network.discover("C", "after", "[memory,>,1]", STATIC)
    network.withdraw("A", "R")
    network.settle()
    network.discover("C", "gone", "[memory,>,1]", STATIC)

    assert [found.attributes["memory"] for found in network.answers["before"]] == [2]
    assert [found.attributes["memory"] for found in network.answers["after"]] == [4]
    assert "gone" not in network.answers or not network.answers["gone"]


def test_an_advertisement_is_flooded_once_over_each_link() -> None:
    network = Network(PATH)
    network.register("A", "R", LINUX, model=STATIC)
    network.settle()

    hops = [(sent.sender, sent.receiver) for sent in network.sent(Advertise)]

    assert hops == [("A", "B"), ("B", "C"), ("B", "D")]


def test_a_dynamic_request_finds_current_values_along_the_path_of_the_figure() -> None:
    network = Network(PATH)
    network.register("A", "R", LINUX)
    network.update("A", "R", {"system": "Linux", "memory": 1, "disk": 200})
    network.settle()

    network.discover("C", "Q", "[disk,>,40]")
    network.settle()

    (found,) = network.answers["Q"]
    assert found.attributes == {"system": "Linux", "memory": 1, "disk": 200}
    assert [(s.sender, s.receiver) for s in network.sent(Discover)] == [("C", "B"), ("B", "A")]
    assert [(s.sender, s.receiver) for s in network.sent(Results)] == [("A", "B"), ("B", "C")]
    assert network.finished["Q"].brokers == ("A",)
    assert network.finished["Q"].messages == 6  # two requests, two results, two end markers


def test_requests_of_one_model_do_not_find_resources_of_the_other() -> None:
    network = Network(PATH)
    network.register("A", "static", LINUX, model=STATIC)
    network.register("A", "dynamic", LINUX, {"memory": 1})
    network.settle()

    network.discover("C", "Q1", "[system,=,Linux]", STATIC)
    network.discover("C", "Q2", "[system,=,Linux]", DYNAMIC)
    network.settle()

    assert network.found("Q1") == ["static"]
    assert network.found("Q2") == ["dynamic"]


def test_a_dynamic_resource_without_values_is_found_once_it_has_some() -> None:
    network = Network(PATH)
    network.register("A", "R", LINUX)
    network.settle()
    network.discover("C", "Q1", "[system,=,Linux]", max_age_ns=0)
    network.settle()

    network.update("A", "R", {"memory": 1})
    network.discover("C", "Q2", "[system,=,Linux]", max_age_ns=0)
    network.discover("C", "Q3", "[disk,<=,320]", max_age_ns=0)
    network.settle()

    assert network.found("Q1") == []
    assert network.found("Q2") == ["R"]  # what it advertises with = need not be repeated
    assert network.found("Q3") == []  # nobody knows its disk


def test_a_request_that_no_advertisement_matches_goes_nowhere() -> None:
    network = Network(PATH)
    network.register("A", "R", LINUX, {"memory": 1})
    network.settle()

    network.discover("C", "Q", "[cores,>,1]")

    assert network.finished["Q"].why_empty
    assert not network.sent(Discover)


def test_kinds_units_and_times_of_the_day_are_asked_for_like_attributes() -> None:
    network = Network(PATH)
    network.register_it(
        "A",
        parse_registration(
            "printer",
            DYNAMIC,
            "[memory,<=,4 GB],[available,>,10 p.m.],[available,<,6 a.m.]",
            values={"memory": Quantity(512, "MB")},
            kind="printer",
            address="ipp://10.0.0.7",
        ),
    )
    network.settle()

    for number, text in enumerate(
        [
            "kind = printer and memory < 1 GB",
            "kind = printer and available >= '02:00' and available <= '03:00'",
            "kind = printer and available > '10:00' and available < '11:00'",
            "kind = printer and available > '20:00-05:00' and available < '22:00-05:00'",
        ]
    ):
        network.discover("C", f"Q{number}", text)
    network.settle()

    assert [network.found(f"Q{n}") for n in range(4)] == [["printer"], ["printer"], [], ["printer"]]
    (found,) = network.answers["Q0"]
    assert (found.kind, found.address) == ("printer", "ipp://10.0.0.7")


def test_first_n_stops_early_and_what_was_asked_is_told_so() -> None:
    network = Network([("A", "B"), ("B", "C"), ("C", "D")], delay_ms=(10, 10))
    for broker in "BCD":
        for number in range(3):
            network.register(broker, f"{broker}{number}", "[a,<=,9]", {"a": 5})
    network.settle()

    network.discover("A", "Q", "[a,>,1]", first=2)
    network.settle()

    assert network.found("Q") == ["B0", "B1"]
    assert network.finished["Q"].stopped_early
    assert network.finished["Q"].found == 2
    assert network.finished["Q"].brokers == ("B",)  # though it has not said that it is done
    assert network.sent(Cancel)
    assert not any(core.one_time.paths for core in network.cores.values())


def test_first_n_that_are_here_ask_nobody() -> None:
    network = Network(PATH)
    for broker in "AC":
        for number in range(3):
            network.register(broker, f"{broker}{number}", "[a,<=,9]", {"a": 5})
    network.settle()

    network.discover("A", "Q", "[a,>,1]", first=3)

    assert network.found("Q") == ["A0", "A1", "A2"]
    assert not network.sent(Discover)


def test_a_static_continuous_request_hears_what_comes_changes_and_goes() -> None:
    network = Network(PATH)
    network.register("A", "R1", "[a,<=,9]", model=STATIC)
    network.settle()
    network.discover("C", "Q", "[a,>,5]", STATIC_CONTINUOUS)
    network.register("D", "R2", "[a,<=,7]", model=STATIC)
    network.register("D", "R3", "[a,<=,3]", model=STATIC)
    network.settle()
    network.register("D", "R2", "[a,<=,8]", model=STATIC)
    network.register("A", "R1", "[a,<=,4]", model=STATIC)
    network.settle()
    network.withdraw("D", "R2")
    network.settle()

    assert network.reported("Q") == [
        (ADDED, "R1"),
        (ADDED, "R2"),
        (CHANGED, "R2"),
        (REMOVED, "R1"),
        (REMOVED, "R2"),
    ]
    network.cancel("C", "Q")
    network.register("D", "R2", "[a,<=,7]", model=STATIC)
    network.settle()
    assert len(network.notices) == 5


def test_a_dynamic_continuous_request_hears_a_snapshot_and_then_every_change() -> None:
    network = Network(PATH)
    network.register("A", "R1", "[a,<=,100]", {"a": 50})
    network.settle()
    network.discover("C", "Q", "[a,>,40]", DYNAMIC_CONTINUOUS)
    network.settle()
    assert network.current["Q"].found == 1

    network.update("A", "R1", {"a": 60})
    network.update("A", "R1", {"a": 30})
    network.update("A", "R1", {"a": 20})  # nobody wants to know
    network.update("A", "R1", {"a": 41})
    network.settle()
    network.register("D", "R2", "[a,<=,100]", {"a": 99})
    network.settle()
    network.withdraw("A", "R1")
    network.settle()

    assert network.reported("Q") == [
        (ADDED, "R1"),
        (CHANGED, "R1"),
        (REMOVED, "R1"),
        (ADDED, "R1"),
        (ADDED, "R2"),
        (REMOVED, "R1"),
    ]
    assert len(network.sent(Update)) == 3 * 2
    network.cancel("C", "Q")
    network.settle()
    assert not any(core.dynamic_watches.watches for core in network.cores.values())


def test_one_update_crosses_a_link_once_for_all_requests_behind_it() -> None:
    network = Network(PATH)
    network.register("A", "R", "[a,<=,100]", {"a": 50})
    network.settle()
    for number in range(5):
        network.discover("C", f"Q{number}", f"[a,>,{number}]", DYNAMIC_CONTINUOUS)
    network.discover("D", "other", "[a,>,90]", DYNAMIC_CONTINUOUS)
    network.settle()

    network.update("A", "R", {"a": 60})
    network.settle()

    assert [(s.sender, s.receiver) for s in network.sent(Update)] == [("A", "B"), ("B", "C")]
    assert all(network.reported(f"Q{n}") == [(ADDED, "R"), (CHANGED, "R")] for n in range(5))


def test_registrations_and_continuous_requests_end_with_their_leases() -> None:
    network = Network(PATH)
    network.register("A", "R", "[a,<=,9]", {"a": 5}, lease_ns=10 * S)
    network.settle()
    network.discover("C", "Q", "[a,>,1]", DYNAMIC_CONTINUOUS, lease_ns=30 * S)
    network.run_until(network.now_ns + 8 * S)
    network.register("A", "R", "[a,<=,9]", {"a": 5}, lease_ns=10 * S)  # renewed
    network.run_until(network.now_ns + 8 * S)
    assert network.reported("Q") == [(ADDED, "R")]
    assert len(network.sent(Advertise)) == 3

    network.run_until(network.now_ns + 5 * S)
    assert network.reported("Q") == [(ADDED, "R"), (REMOVED, "R")]
    network.update("A", "R", {"a": 6})
    assert isinstance(network.refused[-1].error, NoSuchResource)

    network.run_until(network.now_ns + 20 * S)
    assert network.finished["Q"].incomplete == "the lease has ended"
    assert not any(core.dynamic_watches.watches for core in network.cores.values())


def test_values_outside_of_the_advertisement_are_refused() -> None:
    network = Network(PATH)
    network.register("A", "R", LINUX, {"memory": 1})

    for values in ({"memory": 3}, {"cores": 2}, {"memory": "much"}, {"system": "Windows"}):
        network.update("A", "R", values)

    assert len(network.refused) == 4
    assert all(isinstance(refused.error, BadDiscovery) for refused in network.refused)
    network.discover("A", "Q", "[memory,<=,2]")
    assert network.answers["Q"][0].attributes == {"system": "Linux", "memory": 1}


def test_a_change_of_the_advertisements_ends_sharing() -> None:
    """A12: what was registered later is in the answer, although an older request covers it."""
    network = Network(PATH)
    network.register("A", "R1", "[a,<=,9]", {"a": 5})
    network.settle()
    network.discover("C", "Q1", "[a,>,1]")
    network.settle()
    network.register("D", "R2", "[a,<=,9]", {"a": 5})
    network.register("D", "unlike", "[z,<=,9]", {"z": 5})
    network.settle()

    network.discover("C", "Q2", "[a,>,2]")
    network.settle()
    network.withdraw("D", "R2")
    network.settle()
    network.discover("C", "Q3", "[a,>,2]")
    network.settle()

    assert network.found("Q2") == ["R1", "R2"]
    assert network.found("Q3") == ["R1"]


def test_a_shared_answer_outlives_the_client_that_asked_first() -> None:
    network = Network(PATH, delay_ms=(10, 10))
    network.register("A", "R", "[a,<=,9]", {"a": 5})
    network.settle()
    network.discover("C", "Q1", "[a,>,1]")
    network.run_until(network.now_ns + 5 * MS)
    network.cancel("C", "Q1")
    network.settle()

    network.discover("C", "Q2", "[a,>,2]")
    network.settle()

    assert network.found("Q1") == []
    assert "Q1" not in network.finished
    assert network.found("Q2") == ["R"]
    assert network.finished["Q2"].shared


def test_similarity_is_switched_while_the_broker_runs() -> None:
    network = Network(PATH)
    network.register("A", "R", "[a,<=,9]", {"a": 5})
    network.settle()
    network.discover("C", "Q1", "[a,>,1]")
    network.settle()
    for core in network.cores.values():
        core.options = DiscoveryOptions(similarity=False)

    network.discover("C", "Q2", "[a,>,2]")
    network.settle()

    assert not network.finished["Q2"].shared
    assert network.found("Q2") == ["R"]


@pytest.mark.parametrize("model", [STATIC, DYNAMIC, STATIC_CONTINUOUS, DYNAMIC_CONTINUOUS], ids=str)
def test_a_contradictory_request_is_answered_at_once_and_says_so(model: ModelType) -> None:
    network = Network(PATH)
    network.register("A", "R", LINUX, {"memory": 1})
    network.settle()
    before = len(network.trace)

    network.discover_it("C", parse_request("Q", model, "disk > 5 and disk < 3"))
    network.discover_it("C", parse_request("P", model, "disk > Linux"))

    assert network.finished["Q"].why_empty == "no value fulfils disk > 5 and disk < 3"
    assert "compares a text by order" in network.finished["P"].why_empty
    assert len(network.trace) == before
