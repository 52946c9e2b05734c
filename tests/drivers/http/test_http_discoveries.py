"""`/discoveries` of a real broker: a stream of what fits, until it expires."""

from __future__ import annotations

import http.client
import json
from typing import Any

from resource_calls import find, register

from served import Served


class Stream:
    """Server-sent events of one continuous request."""

    def __init__(self, broker: Served, path: str) -> None:
        host, _, port = broker.address.rpartition(":")
        self._connection = http.client.HTTPConnection(host, int(port), timeout=10)
        self._connection.request("GET", path)
        self._response = self._connection.getresponse()
        assert self._response.status == 200

    def next(self) -> tuple[str, Any]:
        kind = ""
        while True:
            line = self._response.readline().decode().rstrip("\n")
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            if line.startswith("data: "):
                return kind, json.loads(line.removeprefix("data: "))

    def close(self) -> None:
        self._connection.close()


def test_a_stream_begins_with_what_there_is_and_goes_on_with_what_changes(
    broker: Served, lab: str
) -> None:
    def of(name: str, **values: object) -> dict[str, object]:
        return {
            "id": f"{lab}-{name}",
            "model": "dynamic",
            "advertisement": f"[lab,=,{lab}],[disk,<=,320]",
            "attributes": values,
        }

    register(broker, **of("a", disk=200))
    watch = find(broker, f"lab = {lab} and disk > 40", model="dynamic continuous")
    stream = Stream(broker, watch["stream"])
    begins = [stream.next(), stream.next()]
    register(broker, **of("b", disk=100))
    added = stream.next()
    broker.call("PATCH", f"/resources/{lab}-a/attributes", {"disk": 150})
    changed = stream.next()
    broker.call("PATCH", f"/resources/{lab}-a/attributes", {"disk": 1})
    too_small = stream.next()
    broker.call("DELETE", f"/resources/{lab}-b")
    withdrawn = stream.next()
    status, _ = broker.call("DELETE", f"/discoveries/{watch['id']}")
    bye = stream.next()
    stream.close()

    assert [kind for kind, _ in begins] == ["added", "current"]
    assert begins[0][1]["attributes"]["disk"] == 200
    assert begins[1][1]["resources"] == 1
    assert (added[0], added[1]["id"]) == ("added", f"{lab}-b")
    assert (changed[0], changed[1]["attributes"]["disk"]) == ("changed", 150)
    assert (too_small[0], too_small[1]["id"]) == ("removed", f"{lab}-a")
    assert (withdrawn[0], withdrawn[1]["id"]) == ("removed", f"{lab}-b")
    assert status == 204
    assert bye == ("bye", {"reason": "the request was cancelled"})
    assert broker.call("GET", f"/discoveries/{watch['id']}")[1]["code"] == "T352"


def test_static_resources_come_and_go_in_a_stream(broker: Served, lab: str) -> None:
    watch = find(broker, f"lab = {lab}", model="static continuous")
    stream = Stream(broker, watch["stream"])
    begins = stream.next()
    register(broker, id=lab, attributes={"lab": lab, "cores": 4})
    added = stream.next()
    register(broker, id=lab, attributes={"lab": lab, "cores": 8})
    changed = stream.next()
    broker.call("DELETE", f"/resources/{lab}")
    removed = stream.next()
    stream.close()

    assert begins[0] == "current"
    assert (added[0], added[1]["attributes"]["cores"]) == ("added", 4)
    assert (changed[0], changed[1]["attributes"]["cores"]) == ("changed", 8)
    assert (removed[0], removed[1]["id"]) == ("removed", lab)


def test_a_continuous_request_ends_when_it_expires(broker: Served, lab: str) -> None:
    watch = find(broker, f"lab = {lab}", model="dynamic continuous", expires=1)
    stream = Stream(broker, watch["stream"])
    begins = stream.next()
    bye = stream.next()
    stream.close()

    assert begins[0] == "current"
    assert bye == ("bye", {"reason": "the lease has ended"})
