"""What simulated runs with principals have found, each in a few steps."""

from __future__ import annotations

import pytest

from manual_runtime import ManualRuntime
from tocsin.access.policy.policy import Policy
from tocsin.access.policy.rights import EVERY_RIGHT, Rule, read_right, read_rule, write_right
from tocsin.access.session import Credential, CredentialKind, Principal, Session
from tocsin.errors import DiskFull, NoSuchCredential
from tocsin.event.filter import EVERYTHING
from tocsin.event.instant import NS_PER_S
from tocsin.event.stored import Stored
from tocsin.services.access.requests import TokenRequest
from tocsin.services.access.service import AccessOptions, AccessService

SECRET = "s" * 43
ADMIN = Session(
    Principal("ann"), "http", "", Credential(CredentialKind.CERTIFICATE, "certificate/1")
)


class Site:
    """A broker with a service of access, in which ann may do everything."""

    def __init__(self, before: Site | None = None) -> None:
        self.policy = Policy(lambda: self.runtime.now_ns())
        self.policy.set_rules([Rule("settings", EVERY_RIGHT, "ann")])
        store = None if before is None else before.runtime.store
        self.runtime = ManualRuntime(store, access=self.policy)
        self.service = AccessService(
            self.runtime.port,
            self.policy,
            AccessOptions(required=True),
            new_secret=lambda: SECRET,
            rights_changed=self.runtime.broker.rights_changed,
        )

    def make_token(self) -> str:
        made = self.service.create_token(ADMIN, TokenRequest("bob"))
        return self.runtime.run(made)[0].id

    def make_rule(self) -> str:
        written = {"principal": "bob", "action": "publish"}
        return self.runtime.run(self.service.add_rule(ADMIN, dict(written))).id

    def is_revoked(self, token_id: str) -> bool:
        return self.policy.tokens[token_id].revoked_ns is not None


class Reader:
    """What a stream writes to."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def write(self, events: list[Stored]) -> bool:
        return True

    def dropped(self, count: int) -> None: ...

    def end(self, reason: str) -> None:
        self.ended.append(reason)


def test_a_token_whose_revocation_had_no_room_is_revoked_when_that_is_asked_again() -> None:
    site = Site()
    token = site.make_token()
    site.runtime.is_disk_full = True
    with pytest.raises(DiskFull):
        site.runtime.run(site.service.revoke_token(ADMIN, token))
    assert site.is_revoked(token)
    site.runtime.is_disk_full = False

    site.runtime.pass_s(2)
    site.runtime.run(site.service.revoke_token(ADMIN, token))

    assert Site(site).is_revoked(token)


def test_a_token_that_is_being_revoked_is_so_for_the_next_who_asks_once_that_is_on_disk() -> None:
    site = Site()
    token = site.make_token()
    site.runtime.is_disk_slow = True
    tasks = [site.runtime.spawn(site.service.revoke_token(ADMIN, token)) for _ in range(2)]

    site.runtime.settle()

    assert site.is_revoked(token)
    assert not any(task.is_done for task in tasks)


def test_a_rule_whose_removal_had_no_room_is_removed_when_that_is_asked_again() -> None:
    site = Site()
    rule = site.make_rule()
    site.runtime.is_disk_full = True
    with pytest.raises(DiskFull):
        site.runtime.run(site.service.remove_rule(ADMIN, rule))
    assert rule not in site.policy.rules
    site.runtime.is_disk_full = False

    site.runtime.pass_s(2)
    site.runtime.run(site.service.remove_rule(ADMIN, rule))

    assert rule not in Site(site).policy.rules
    with pytest.raises(NoSuchCredential):
        site.runtime.run(site.service.remove_rule(ADMIN, rule))


def test_an_administrators_token_whose_revocation_had_no_room_is_revoked_with_the_next() -> None:
    site = Site()
    first = site.runtime.run(site.service.administrator(None))
    token = first.split("_")[1]
    site.runtime.is_disk_full = True
    with pytest.raises(DiskFull):
        site.runtime.run(site.service.administrator(None))
    site.runtime.is_disk_full = False

    site.runtime.pass_s(2)
    site.runtime.run(site.service.administrator(None))

    assert Site(site).is_revoked(token)


def test_a_right_ends_at_the_same_moment_after_a_restart() -> None:
    right = read_right({"action": "read", "expires": "2027-01-01T00:00:00.123456789Z"}, 0)

    assert read_right(write_right(right), 0).expires_ns == right.expires_ns


def test_a_stream_ends_with_a_credential_that_is_no_token_of_the_broker() -> None:
    site = Site()
    site.policy.set_rules([read_rule({"principal": "eve", "action": "*"}, "1", 0)])
    ends_ns = site.runtime.now_ns() + NS_PER_S
    credential = Credential(CredentialKind.OPENID, "openid/1", ends_ns)
    reader = Reader()
    eve = Session(Principal("eve"), "http", "", credential)
    site.runtime.port.open_stream(eve, reader, EVERYTHING, None, "eve")

    site.runtime.pass_s(0.9)
    assert not reader.ended
    site.runtime.pass_s(0.2)

    assert reader.ended


def test_a_stream_ends_when_a_clock_that_was_set_says_that_its_right_is_over() -> None:
    site = Site()
    written = {"principal": "eve", "action": "*", "expires": "PT72H"}
    site.policy.set_rules([read_rule(written, "1", site.runtime.now_ns())])
    reader = Reader()
    eve = Session(Principal("eve"), "http", "", Credential(CredentialKind.OPENID, "openid/1"))
    site.runtime.port.open_stream(eve, reader, EVERYTHING, None, "eve")
    site.policy.now_ns = lambda: site.runtime.broker.clock.time_ns(site.runtime.now_ns())
    now_ns, ahead_ns = site.runtime.now_ns(), 100 * 3_600 * NS_PER_S

    site.runtime.broker.clock.accept(now_ns + ahead_ns, site.runtime.signal(), now_ns)
    site.runtime.settle()

    assert reader.ended


def test_a_stream_ends_with_its_right_also_when_a_wrong_clock_took_that_to_be_over() -> None:
    site = Site()
    clock, runtime = site.runtime.broker.clock, site.runtime
    site.policy.now_ns = lambda: clock.time_ns(runtime.now_ns())
    now_ns = runtime.now_ns()
    site.policy.set_rules(
        [read_rule({"principal": "eve", "action": "*", "expires": "PT9S"}, "1", now_ns)]
    )
    for wall_ns in (now_ns + 100 * 3_600 * NS_PER_S, now_ns):
        clock.accept(wall_ns, runtime.signal(), runtime.now_ns())
        runtime.settle()
    reader = Reader()
    eve = Session(Principal("eve"), "http", "", Credential(CredentialKind.OPENID, "openid/1"))
    runtime.port.open_stream(eve, reader, EVERYTHING, None, "eve")

    runtime.pass_s(8)
    assert not reader.ended
    runtime.pass_s(2)

    assert reader.ended
