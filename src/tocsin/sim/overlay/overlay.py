"""Overlay: the brokers of a world that are linked, and what they owe each other in the end."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tocsin.access.session import Session, internal
from tocsin.event.subscription import Kind
from tocsin.services.link.service import LinkService
from tocsin.sim.certificates import Certificates
from tocsin.sim.checks.discovery import DiscoveryCheck
from tocsin.sim.checks.overlay import OverlayCheck
from tocsin.sim.checks.resources import ResourceCheck
from tocsin.sim.clients.discovery import Owner, Seeker
from tocsin.sim.clients.watchers import Watcher
from tocsin.sim.machine import Machine
from tocsin.sim.network import Network
from tocsin.sim.overlay.connections import LinkEnd, LinkNetwork
from tocsin.sim.overlay.expected_tables import (
    Edge,
    ExpectedTables,
    Rows,
    hops,
    is_tree,
    links_of,
    tables_of,
)
from tocsin.sim.overlay.member import Member, links_of_process
from tocsin.sim.overlay_plan import OverlayPlan
from tocsin.sim.world import Violation, World

QUIET_S = 2.5  # longer than answers are shared, and than messages of discovery take
_READER = internal("simulator")


class Overlay:
    """Of one world."""

    def __init__(
        self, world: World, plan: OverlayPlan, network: Network, machines: list[Machine]
    ) -> None:
        self.check = OverlayCheck(world)
        self.resources = ResourceCheck(world)
        self.discovery = DiscoveryCheck(_violated, lambda: world.now_ns)
        self.links = LinkNetwork(world, network, plan.breaks)
        self._world = world
        self._plan = plan
        self._machines = machines
        self._owners: list[Owner] = []
        self._seekers: list[Seeker] = []
        self._watchers: list[Watcher] = []
        self._edges: set[Edge] = set()  # the tree, by broker ids
        self._expected = ExpectedTables(plan.members[0].options.routing)
        self._quiet_since_s: float | None = None
        self._has_asked = self._have_watched = False
        self._certificates = Certificates(world)
        for machine, member in zip(machines, plan.members, strict=True):
            self.links.hosts[machine.host] = machine
            self.check.add(machine.host, machine.checks)
            access = machine.access
            if access is not None:
                access.certificates = self._certificates
            machine.member = Member(
                machine.host,
                member,
                self.links,
                self.check,
                self.discovery,
                None if access is None else access.links,
            )
            self._owners += [Owner(machine, n, self.resources) for n in range(member.resources)]
            hops_to = partial(self._hops, machine.host)
            searches = plan.is_searching
            seeker = Seeker(machine, member, self.resources, hops_to, is_searching=searches)
            self._seekers.append(seeker)
            self._watchers += [Watcher(machine, n, self.resources) for n in range(member.watches)]

    def start(self) -> None:
        for each in self._plan.separations:
            one, other = self._machines[each.one].host, self._machines[each.other].host
            part = partial(self.links.separate, one, other, each.for_ms)
            self._world.after_ms(each.at_ms, part)
        for owner in self._owners:
            owner.start()
        for seeker in self._seekers:
            seeker.start()
        for watcher in self._watchers:
            watcher.start()

    @property
    def is_done(self) -> bool:
        owners_are = all(owner.is_done for owner in self._owners)
        return owners_are and all(seeker.is_done for seeker in self._seekers)

    # The end

    def what_is_owed(self) -> str | None:
        """Why this is not the end yet. To be asked when no broker owes its clients anything."""
        if not self.is_done:
            return "an owner of a resource has no answer"
        if self._certificates.end_soon(self._sessions()):
            return self._not_yet("a link is about to end, with a certificate")
        services = [links_of_process(machine.process) for machine in self._machines]
        running = [links for links in services if links is not None]
        if len(running) < len(services):
            return "a broker has no links yet"
        for machine, links in zip(self._machines, running, strict=True):
            if (owed := _left_over(machine, links)) is not None:
                return self._not_yet(owed)
        owed = (
            self._tables_differ(running) or self.check.what_is_owed() or self.discovery.left_over()
        )
        if owed is not None:
            return self._not_yet(owed)
        owed = self._ask_everywhere() or self._watchers_owe()
        return owed or self._discovery_left_over(running)

    def _sessions(self) -> Iterator[Session]:
        """Of all that are at the other end of a connection."""
        for machine in self._machines:
            for each in machine.process.connections if machine.process is not None else ():
                if isinstance(each, LinkEnd):
                    yield each.session

    def _not_yet(self, owed: str) -> str:
        self._quiet_since_s = None
        return owed

    def _tables_differ(self, running: list[LinkService]) -> str | None:
        views = {view.broker: view for view in (links.router.tables() for links in running)}
        edges = links_of(views.values())
        if not is_tree(views, edges):
            return f"the links are no tree: {sorted(edges)}"
        self._edges = edges
        expected = self._expected.of(views)
        for broker, view in views.items():
            for have, want in zip(tables_of(view), expected[broker], strict=True):
                if have != want:
                    return f"the tables of {broker} differ: {_difference(have, want)}"
        return None

    def _ask_everywhere(self) -> str | None:
        """When nothing has changed for a while, every broker finds what there is."""
        now_s = self._world.elapsed_s
        if self._quiet_since_s is None:
            self._quiet_since_s = now_s
        if not self._has_asked:
            if now_s - self._quiet_since_s < QUIET_S:
                return "the brokers have just become quiet"
            self._has_asked = True
            for seeker in self._seekers:
                seeker.ask_in_calm()
                seeker.ask_in_calm()
        if not all(all(seeker.calm_answers) for seeker in self._seekers):
            return "a discovery has not ended"
        return None

    def _watchers_owe(self) -> str | None:
        """All have been told of everything; then their requests end."""
        if not self._have_watched:
            for watcher in self._watchers:
                if (owed := watcher.what_is_owed()) is not None:
                    return owed
            self._have_watched = True
            for watcher in self._watchers:
                watcher.end()
        return None

    def _hops(self, host: str, other: str) -> int:
        ids = self.check.ids
        return hops(self._edges, ids[host], ids[other])

    def _discovery_left_over(self, running: list[LinkService]) -> str | None:
        for links in running:
            sizes = links.info(_READER, rows_max=0).discovery["sizes"]
            assert isinstance(sizes, dict)
            if any(sizes.values()):
                return f"{links.router.broker} keeps requests: {sizes}"
        return None


def _violated(what: str) -> None:
    raise Violation(what)


def _difference(have: Rows, want: Rows) -> str:
    rows = have.items() ^ want.items()
    keys = sorted({row[0] for row in rows})
    return "; ".join(
        f"{key} is {_short(have.get(key))}, not {_short(want.get(key))}" for key in keys
    )


def _short(row: tuple[object, ...] | None) -> object:
    return row and tuple(each[:40] if isinstance(each, str) else each for each in row)


def _left_over(machine: Machine, links: LinkService) -> str | None:
    """What a broker still has to do for others, or keeps for nobody."""
    if len(links.handovers):
        return f"{machine.host} has {len(links.handovers)} handovers"
    if waiting := sum(each.in_flight for each in links.neighbours):
        return f"{machine.host} has sent {waiting} events that are not acknowledged"
    assert machine.node is not None
    found = {
        view.subscription.id
        for view in machine.node.port.views(_READER)
        if view.subscription.kind is Kind.LINK
    }
    known = {each.link_id for each in links.neighbours if each.link_id}
    if found != known:
        return f"{machine.host} keeps a place in the log for nobody: {found} and not {known}"
    return None
