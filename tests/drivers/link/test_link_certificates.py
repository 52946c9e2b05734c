"""Brokers that are linked know each other by their certificates, at both ends."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from brokers import FAST, Brokers, brokers

from pki import BROKER
from served import Served
from tls_site import Client, Site
from waiting import wait_until

RULES = """
[[access]]
group = "brokers"
action = ["publish", "subscribe", "manage", "read"]
topic = "**"

[[access]]
principal = "edge"
action = ["publish", "subscribe"]
topic = "open/**"

[[access]]
principal = "edge"
action = ["manage"]
resource = "link/*"

[[access]]
principal = "olga"
action = "*"
"""


@pytest.fixture
def place() -> Iterator[Brokers]:
    with brokers() as found:
        yield found


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path)
    made.config.write_text(RULES)
    return made


class Linked:
    """Brokers of a site, and an operator."""

    def __init__(self, place: Brokers, site: Site) -> None:
        self.place, self.site = place, site
        self.operator = site.context(site.issue("olga"))

    def start(
        self,
        name: str,
        *peers: Served,
        principal: str = "",
        units: tuple[str, ...] = ("brokers",),
        **env: str,
    ) -> Served:
        site = self.site
        files = site.issue(
            name, principal or name, units=units, hosts=("localhost",), usages=BROKER
        )
        self.certificate = site.last
        flags = ("--tls-cert", files[0], "--tls-key", files[1], "--config", str(site.config))
        overlay = {"OVERLAY__TLS": "true", "OVERLAY__CA_FILE": str(site.ca)}
        environment = site.environment(**{**overlay, **env})
        addresses = [each.link.replace("127.0.0.1", "localhost") for each in peers]
        return self.place.start(name, *addresses, flags=flags, **{**FAST, **environment})

    def call(self, broker: Served, method: str, path: str, body: object = None) -> Any:
        with Client(broker, self.operator) as client:
            status, answer = client.call(method, path, body)
            assert status in (200, 201, 202, 204), answer
            return answer

    def overlay(self, broker: Served) -> Any:
        return self.call(broker, "GET", "/overlay")

    def state(self, broker: Served) -> list[str]:
        return [each["state"] for each in self.overlay(broker)["neighbours"]]

    def box(self, broker: Served, topic: str) -> str:
        made = self.call(broker, "POST", "/boxes", {"filters": [{"topic": topic}]})
        return str(made["id"])

    def wanted(self, broker: Served, topic: str) -> bool:
        return topic in json.dumps(self.call(broker, "GET", "/overlay?rows=100")["subscriptions"])

    def publish(self, broker: Served, topic: str, id: str) -> None:
        with Client(broker, self.operator) as client:
            assert client.publish(topic, id)[0] == 202

    def taken(self, broker: Served, box_id: str) -> list[str]:
        found = self.call(broker, "GET", f"/boxes/{box_id}/messages?max=100&wait=0")
        return [each["id"] for each in found["events"]]


@pytest.fixture
def linked(place: Brokers, site: Site) -> Linked:
    return Linked(place, site)


def test_brokers_of_a_site_are_linked_and_carry_what_their_rights_allow(linked: Linked) -> None:
    a = linked.start("a")
    b = linked.start("b", a)
    wait_until(lambda: linked.state(a) == linked.state(b) == ["up"], "linked")
    box_id = linked.box(b, "lead/**")
    wait_until(lambda: linked.wanted(a, "lead/**"), "it is wanted")

    linked.publish(a, "lead/x", "e1")

    wait_until(lambda: linked.taken(b, box_id) == ["e1"], "it arrives")


def test_a_broker_of_less_rights_gets_and_gives_only_what_they_allow(linked: Linked) -> None:
    """At both ends: the broker in the middle withholds, and it does not take."""
    core = linked.start("core")
    edge = linked.start("edge", core, units=())
    wait_until(lambda: linked.state(edge) == ["up"], "linked")
    there, here = linked.box(edge, "**"), linked.box(core, "**")
    wait_until(lambda: linked.overlay(core)["subscriptions_total"] >= 2, "its wish is known")

    linked.publish(core, "secret/x", "s1")
    linked.publish(core, "open/x", "o1")
    wait_until(lambda: "o1" in linked.taken(edge, there), "what is open arrives")
    time.sleep(0.5)
    assert "s1" not in linked.taken(edge, there)

    linked.publish(edge, "secret/x", "s2")
    linked.publish(edge, "open/x", "o2")
    wait_until(
        lambda: "o2" in json.dumps(linked.call(core, "GET", "/events?after=0")), "it is taken"
    )
    assert "s2" not in json.dumps(linked.call(core, "GET", "/events?after=0"))
    assert here


def test_who_shows_no_certificate_or_one_without_rights_is_not_linked(linked: Linked) -> None:
    a = linked.start("a")
    stranger = linked.start("stranger", a, units=())

    wait_until(lambda: linked.overlay(stranger)["peers"][0]["error"], "it is told why")
    error = linked.overlay(stranger)["peers"][0]["error"]
    assert "T215" in json.dumps(error)
    assert linked.state(a) == []


def test_a_broker_that_is_revoked_loses_its_link_and_gets_nothing_more(linked: Linked) -> None:
    a = linked.start("a")
    b = linked.start("b", a)
    revoked = linked.certificate
    wait_until(lambda: linked.state(a) == linked.state(b) == ["up"], "linked")
    box_id = linked.box(b, "lead/**")
    wait_until(lambda: linked.wanted(a, "lead/**"), "it is wanted")

    linked.site.revoke(revoked)

    wait_until(
        lambda: "a certificate was refused" in a.said() or linked.state(a) != ["up"], "unlinked"
    )
    linked.publish(a, "lead/x", "e1")
    time.sleep(1.0)
    assert linked.taken(b, box_id) == []


def test_a_renewed_certificate_takes_up_the_same_place_in_the_log(linked: Linked) -> None:
    a = linked.start("a")
    b = linked.start("b", a)
    first = linked.certificate
    wait_until(lambda: linked.state(a) == linked.state(b) == ["up"], "linked")
    box_id = linked.box(b, "lead/**")
    wait_until(lambda: linked.wanted(a, "lead/**"), "it is wanted")
    b.kill()
    linked.publish(a, "lead/x", "while it was away")

    linked.site.issue("b", units=("brokers",), hosts=("localhost",), usages=BROKER)
    b.start()
    wait_until(lambda: linked.state(b) == ["up"], "linked")
    linked.site.revoke(first)
    wait_until(lambda: "while it was away" in linked.taken(b, box_id), "it is sent")
    time.sleep(1.0)
    linked.publish(a, "lead/x", "afterwards")

    wait_until(lambda: "afterwards" in linked.taken(b, box_id), "the owner is the new credential")


def test_nobody_takes_the_place_of_another_broker_in_the_log(linked: Linked) -> None:
    """A copy of its data, with a certificate of another name."""
    a = linked.start("a")
    b = linked.start("b", a)
    wait_until(lambda: linked.state(a) == linked.state(b) == ["up"], "linked")
    b.kill()

    linked.site.issue("b", "mallory", units=("brokers",), hosts=("localhost",), usages=BROKER)
    b.start()

    wait_until(lambda: linked.overlay(b)["peers"][0]["error"], "it is refused")
    assert "that of another principal" in a.said()
    assert linked.state(a) == ["down"]


def test_a_peer_that_the_site_has_not_signed_is_nobody_in_particular(
    linked: Linked, tmp_path: Path
) -> None:
    """Its certificate is believed for its host name; its common name is not a principal here."""
    other = Site(tmp_path, "other")
    files = other.issue("b", "b", units=("brokers",), hosts=("localhost",), usages=BROKER)
    both = tmp_path / "both.pem"
    both.write_bytes(linked.site.authority.pem + other.authority.pem)
    b = linked.place.start(
        "b",
        flags=("--tls-cert", files[0], "--tls-key", files[1], "--config", str(linked.site.config)),
        **{**FAST, **linked.site.environment()},
    )
    d = linked.place.start(
        "d",
        b.link.replace("127.0.0.1", "localhost"),
        flags=("--tls-cert", linked.site.host[0], "--tls-key", linked.site.host[1],
               "--config", str(linked.site.config)),
        **{**FAST, **linked.site.environment(OVERLAY__TLS="true", OVERLAY__CA_FILE=str(both))},
    )  # fmt: skip

    wait_until(lambda: linked.overlay(d)["peers"][0]["error"], "it is refused")
    assert "T216" in d.said() or "T216" in json.dumps(linked.overlay(d)["peers"][0]["error"])


def test_links_show_a_certificate_of_their_own_if_one_is_named(linked: Linked) -> None:
    a = linked.start("a")
    files = linked.site.issue("uplink", units=("brokers",))
    b = linked.start(
        "b",
        a,
        principal="plain",
        units=(),
        OVERLAY__CLIENT_CERTIFICATE=files[0],
        OVERLAY__CLIENT_KEY=files[1],
    )

    # A believes the uplink; B believes A.
    wait_until(lambda: linked.state(a) == linked.state(b) == ["up"], "linked")


def test_contexts_do_not_believe_the_site_for_host_names_unless_told(linked: Linked) -> None:
    a = linked.start("a")
    b = linked.start("b", a, OVERLAY__CA_FILE="")

    wait_until(lambda: linked.overlay(b)["peers"][0]["error"], "it is refused")
    assert "not trusted" in linked.overlay(b)["peers"][0]["error"]["problem"]
