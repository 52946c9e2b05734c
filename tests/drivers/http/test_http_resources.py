"""`/resources` and `/discoveries` of a real broker, as a program would use them."""

from __future__ import annotations

import time
from typing import Any

import pytest
from resource_calls import find, register

from served import Served, served

PAPER = "[system,=,Linux],[memory,<=,2],[disk,<=,320]"


def ids(answer: Any) -> list[str]:
    return [each["id"] for each in answer["resources"]]


def test_a_static_resource_is_found_by_what_it_advertises(broker: Served, lab: str) -> None:
    resource = register(
        broker, id=f"{lab}-1", model="static", advertisement=f"{PAPER},[lab,=,{lab}]"
    )

    found = find(broker, f"[lab,=,{lab}],[disk,>,120]")
    missed = find(broker, f"[lab,=,{lab}],[disk,>,400]")

    assert resource["lease"] == "PT600S"
    assert ids(found) == [f"{lab}-1"]
    assert (found["messages"], found["shared"]) == (0, False)
    assert found["brokers"] == [found["resources"][0]["broker"]]
    assert ids(missed) == []
    assert "no static resource" in missed["why_empty"]


def test_a_dynamic_resource_is_found_by_its_values_and_not_before_it_has_some(
    broker: Served, lab: str
) -> None:
    name = f"{lab}-1"
    register(broker, id=name, model="dynamic", advertisement=f"{PAPER},[lab,=,{lab}]")
    request = f"lab = {lab} and disk > 40"

    before = find(broker, request, model="dynamic", max_age=0)
    status, updated = broker.call(
        "PUT", f"/resources/{name}/attributes", {"system": "Linux", "memory": 1, "disk": 200}
    )
    after = find(broker, request, model="dynamic", max_age=0)
    broker.call("PATCH", f"/resources/{name}/attributes", {"disk": 30})
    full = find(broker, request, model="dynamic", max_age=0)

    assert ids(before) == []
    assert (status, updated["attributes"]["disk"]) == (200, 200)
    assert ids(after) == [name]
    assert after["resources"][0]["attributes"]["memory"] == 1
    assert after["resources"][0]["as_of"] >= updated["updated"]
    assert ids(full) == []


def test_values_outside_of_the_advertisement_are_refused_and_change_nothing(
    broker: Served, lab: str
) -> None:
    register(
        broker,
        id=lab,
        model="dynamic",
        advertisement=f"{PAPER},[lab,=,{lab}]",
        attributes={"disk": 100},
    )

    status, problem = broker.call("PUT", f"/resources/{lab}/attributes", {"disk": 900})

    assert (status, problem["code"]) == (400, "T350")
    assert "disk = 900" in problem["detail"]
    assert broker.call("GET", f"/resources/{lab}")[1]["attributes"] == {"disk": 100}


def test_resources_are_there_again_after_a_crash() -> None:
    with served() as broker:
        register(broker, id="a", advertisement=PAPER)
        register(
            broker, id="b", model="dynamic", advertisement=PAPER, attributes={"disk": 9}, lease=None
        )
        register(broker, id="c", advertisement=PAPER)
        broker.call("PATCH", "/resources/b/attributes", {"memory": 1})
        broker.call("DELETE", "/resources/c")
        broker.call("PATCH", "/overlay/options", {"similarity": False, "cache_expiry_s": 7})
        before = find(broker, "disk > 1")["brokers"]

        broker.kill()
        broker.start()

        answer = find(broker, "disk > 1")
        dynamic = find(broker, "disk > 1", model="dynamic")
        assert ids(answer) == ["a"]
        assert answer["brokers"] == before
        assert dynamic["resources"][0]["attributes"] == {"system": "Linux", "disk": 9, "memory": 1}
        assert broker.call("GET", "/overlay/options")[1] == {
            "similarity": False,
            "direct": False,
            "cache_expiry_s": 7.0,
        }


def test_a_lease_ends_and_an_update_begins_it_anew(broker: Served, lab: str) -> None:
    for name in ("kept", "lost"):
        register(
            broker,
            id=f"{lab}-{name}",
            model="dynamic",
            advertisement=f"[lab,=,{lab}],[n,>=,0]",
            attributes={"n": 1},
            lease=10,
        )
    time.sleep(5)
    broker.call("PATCH", f"/resources/{lab}-kept/attributes", {})
    time.sleep(6)

    found = find(broker, f"lab = {lab}", model="dynamic", max_age=0)

    assert ids(found) == [f"{lab}-kept"]
    assert broker.call("GET", f"/resources/{lab}-lost")[0] == 404


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("cores", ["small", "middle", "large", "none"]),
        ("cores desc", ["large", "middle", "small", "none"]),
        ("memory DESC", ["middle", "small", "large", "none"]),
    ],
)
def test_answers_are_ordered_and_what_lacks_the_attribute_is_last(
    broker: Served, lab: str, order: str, expected: list[str]
) -> None:
    for name, values in {
        "none": {},
        "large": {"cores": 64, "memory": {"value": 900, "unit": "MB"}},
        "small": {"cores": 2, "memory": {"value": 1, "unit": "GB"}},
        "middle": {"cores": 16, "memory": {"value": 2, "unit": "GB"}},
    }.items():
        register(broker, id=f"{lab}-{name}", attributes={"lab": lab, **values})

    found = find(broker, f"lab = {lab}", order_by=order)
    first = find(broker, f"lab = {lab}", order_by=order, first=1)

    assert [each.removeprefix(f"{lab}-") for each in ids(found)] == expected
    assert [each.removeprefix(f"{lab}-") for each in ids(first)] == expected[:1]
    assert first["stopped_early"]


def test_the_nearest_come_first_by_distance(broker: Served, lab: str) -> None:
    register(broker, id=lab, attributes={"lab": lab})

    found = find(broker, f"lab = {lab}", order_by="distance")

    assert [(each["hops"], each["round_trip_s"]) for each in found["resources"]] == [(0, None)]


@pytest.mark.parametrize(
    ("available", "asked", "is_found"),
    [
        ("[available,>,8 a.m.]", "[available,>,7 a.m.],[available,<,3 p.m.]", True),
        ("[available,>,8 a.m.]", "[available,<,7 a.m.]", False),
        ("[available,>,8 a.m. Asia/Tokyo]", "[available,=,23:30]", True),
        ("[available,>,8 a.m. Asia/Tokyo]", "[available,=,20:00]", False),
        ("[available,>,22:00],[available,<,06:00]", "available = '2 a.m.'", True),
    ],
)
def test_a_resource_is_found_when_it_is_available(
    broker: Served, lab: str, available: str, asked: str, is_found: bool
) -> None:
    register(broker, id=lab, advertisement=f"[lab,=,{lab}],{available}")
    joined = f"{asked},[lab,=,{lab}]" if asked.startswith("[") else f"{asked} and lab = {lab}"

    assert ids(find(broker, joined)) == ([lab] if is_found else [])


@pytest.mark.parametrize("model", ["static", "dynamic", "static continuous", "dynamic continuous"])
@pytest.mark.parametrize(
    ("request_text", "why"),
    [
        ("disk > 5 and disk < 3", "no value fulfils"),
        ("disk > Linux", "texts have only ="),
        ("disk = 5 and disk = Linux", "no value is both"),
    ],
)
def test_a_contradiction_is_answered_at_once_and_says_so(
    broker: Served, model: str, request_text: str, why: str
) -> None:
    answer = find(broker, request_text, model=model)

    assert why in answer["why_empty"]
    assert answer["resources"] in ([], 0)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"request": "disk ~ 5"}, "operator"),
        ({"request": "not disk = 5"}, "not described by"),
        ({"request": "a = 1 or a = 2"}, "not described by"),
        ({"request": 5}, "request is 5"),
        ({"request": "a = 1", "model": "sometimes"}, "Choose one of static"),
        ({"request": "a = 1", "first": 0}, "first is 0"),
        ({"request": "a = 1", "max_age": -1}, "max_age is -1"),
        ({"request": "a = 1", "order_by": "a, b"}, "order_by"),
        ({"request": "a = 1", "expires": "PT1H"}, "no meaning for a one-time request"),
        ({"request": "a = 1", "model": "static continuous", "first": 3}, "no meaning"),
        ({"request": "a = 1", "modle": "static"}, "Did you mean model?"),
        ({"request": " and ".join(f"a{n} > {n}" for n in range(10_000))}, "request"),
    ],
)
def test_what_is_wrong_with_a_request_is_named(
    broker: Served, members: dict[str, object], words: str
) -> None:
    status, problem = broker.call("POST", "/discoveries", members)

    assert status == 400
    assert words in problem["detail"] + problem["remedy"]


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"model": "dynamic"}, "advertisement is missing"),
        ({}, "advertisement is missing"),
        ({"id": "a b", "attributes": {"a": 1}}, "id is"),
        ({"attributes": {"a": 1}, "lease": "PT1S"}, "lease is"),
        ({"attributes": {"a": [1]}}, "attributes.a is [1]"),
        ({"attributes": {"9": 1}}, "not a valid attribute name"),
        ({"attributes": {f"a{n}": n for n in range(10_000)}}, "has 10000 members"),
        ({"advertisement": "[a,>,5],[a,<,3]"}, "can never be found"),
        ({"advertisement": "[a,<=,5]", "attributes": {"a": 7}}, "outside of what"),
        ({"attributes": {"a": 1}, "modle": "static"}, "Did you mean model?"),
    ],
)
def test_what_is_wrong_with_a_resource_is_named(
    broker: Served, members: dict[str, object], words: str
) -> None:
    status, problem = broker.call("POST", "/resources", members)

    assert (status, problem["code"]) == (400, "T350")
    assert words in problem["detail"] + problem["remedy"]


def test_resources_are_listed_page_by_page(broker: Served, lab: str) -> None:
    for number in range(5):
        register(broker, id=f"{lab}-{number}", kind=lab, attributes={"lab": lab})

    _, first = broker.call("GET", f"/resources?kind={lab}&limit=3")
    _, second = broker.call("GET", f"/resources?kind={lab}&limit=3&after={first['next']}")

    assert [each["id"] for each in first["resources"]] == [f"{lab}-{n}" for n in range(3)]
    assert [each["id"] for each in second["resources"]] == [f"{lab}-{n}" for n in (3, 4)]
    assert second["next"] is None


def test_a_similar_request_shares_the_answer_unless_it_wants_a_fresh_one(
    broker: Served, lab: str
) -> None:
    register(
        broker,
        id=lab,
        model="dynamic",
        advertisement=f"[lab,=,{lab}],[disk,<=,320]",
        attributes={"disk": 100},
    )
    find(broker, f"lab = {lab}", model="dynamic")

    shared = find(broker, f"lab = {lab} and disk > 40", model="dynamic")
    fresh = find(broker, f"lab = {lab} and disk > 40", model="dynamic", max_age=0)

    assert (ids(shared), ids(fresh)) == ([lab], [lab])
    assert (shared["shared"], fresh["shared"]) == (True, False)


def test_a_kind_and_an_address_are_shown_and_the_kind_is_asked_for(
    broker: Served, lab: str
) -> None:
    register(broker, id=lab, kind="service", address="https://x.example/", attributes={"lab": lab})

    found = find(broker, f"kind = service and lab = {lab}")["resources"][0]

    assert (found["kind"], found["address"]) == ("service", "https://x.example/")
