"""Machine: a simulated computer with a disk and a clock, on which one broker process runs after
another."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any, Protocol

from tocsin.access.decision import EVERYBODY, Access, Action, BoxAccess
from tocsin.access.session import Session, anonymous
from tocsin.broker import effects as do
from tocsin.broker.broker import Broker
from tocsin.broker.delivery.deadletter import DeadLetter
from tocsin.broker.log import EventStore
from tocsin.broker.options import BrokerOptions
from tocsin.broker.snapshot import Snapshot, load_snapshot
from tocsin.broker.state.state import CLOCK
from tocsin.errors import DiskFull, TocsinError
from tocsin.services.link.transport import Receiver, Transport
from tocsin.sim.checks.attempts import AttemptCheck
from tocsin.sim.checks.delivery import DeliveryCheck
from tocsin.sim.checks.link_access import LinkEndCheck
from tocsin.sim.checks.log import LogCheck
from tocsin.sim.delivery import Delivery
from tocsin.sim.faults.clock import MachineClock
from tocsin.sim.faults.crashes import CrashKind, CrashPoint, PlannedCrashes
from tocsin.sim.faults.damage import flip_a_bit
from tocsin.sim.faults.disk import FaultyDisk
from tocsin.sim.network import Network, Request, Response
from tocsin.sim.node import SimNode, dead_letters
from tocsin.sim.plan import SECONDS_LONG, BrokerPlan, host_of
from tocsin.sim.port import CheckedPort
from tocsin.sim.process import Process
from tocsin.sim.runtime import SimTask
from tocsin.sim.services import Services
from tocsin.sim.shared_log import SharedLog, SharedLogClient
from tocsin.sim.site_access import SiteAccess
from tocsin.sim.world import Violation, World
from tocsin.store.store import Store
from tocsin.store.vfs import PowerCut

DIRECTORY = "data"
BOXES_DIRECTORY = "data/boxes"
START_OPERATIONS_MAX = 40
FLIPS = 4  # one after the other, each in an intact log
DAMAGE_STAYS = 0.5  # the chance that nobody restores a copy
DOWN_MS_MAX = 150
GIVES_UP = 0.3
REFUSALS = (401, 403)  # nobody has signed in, or somebody without the right


class Member(Protocol):
    """A broker's part in an overlay."""

    def started(self, process: Process) -> None: ...


class Machine:
    """One broker of a world, over all its crashes."""

    def __init__(
        self,
        world: World,
        plan: BrokerPlan,
        network: Network,
        number: int,
        shared: SharedLog | None = None,
    ) -> None:
        """`shared`: the log that it has in common with others, instead of one on its disk."""
        self.host = host_of(number)
        self.plan = plan
        self.world = world
        self.network = network
        self.process: Process | None = None
        self.crashes = 0
        self.disk = FaultyDisk(f"simulated-{world.seed}-{number}", world.seen)
        self.clock = MachineClock(world, str(number))
        self.check_service_state: Callable[[Snapshot], None] = _ignore
        self.box_options = replace(plan.options, retain_age_s=plan.box_retain_s, retain_bytes=None)
        self._shared = None if shared is None else SharedLogClient(shared, self.disk)
        own_check = None if shared is None else shared.check
        self.checks = self._checks(plan.options, own_check)
        self.box_checks = self._checks(self.box_options, None)
        self.delivery = Delivery(world, self.checks, self)
        self.access: SiteAccess | None = None
        if plan.access is not None:
            self.access = SiteAccess(world, plan.access, self.host, self.checks.log)
            self.checks.access = self.access.model
        self._access: Access = EVERYBODY  # of the process that runs
        self.member: Member | None = None  # its part in the overlay, if it has one
        self._planned = PlannedCrashes(plan.crashes)
        self._requests = count(1)
        self._is_unsure = False  # the power went, and no process has run since
        self._damage_random = Random(f"damage {world.seed} {number}")
        self._ids = Random(f"ids {world.seed} {number}")
        network.hosts[self.host] = self

    def _checks(self, options: BrokerOptions, log: LogCheck | None) -> DeliveryCheck:
        return DeliveryCheck(
            self.world,
            self.clock,
            log or LogCheck(options.duplicates_window),
            AttemptCheck(self.world, options.retry),
            all_may_drop=options.backlog_age_s < SECONDS_LONG,
        )

    # Starting

    def start(self) -> None:
        """Open the log and take up what is there. Struck meanwhile, start again later."""
        world, disk = self.world, self.disk
        disk.sync_fails = False
        self._may_be_damaged()
        crash = None if world.calm else self._planned.due(CrashPoint.STARTING)
        disk.cut_at = None
        if crash is not None:
            disk.cut_at = disk.operations + world.random.randint(1, START_OPERATIONS_MAX)
        self.clock.may_be_set(self.plan.clock_set)
        process = self._new_process()
        try:
            self._open(process)
        except PowerCut:
            assert crash is not None
            world.seen[f"crash: {crash.point.value}"] += 1
            process.abandon()
            self._ended(crash.kind)
            return
        except DiskFull:
            world.seen["disk full at start"] += 1
            process.abandon()
            disk.kill()
            world.soon(1, DOWN_MS_MAX, self.start)
            return
        except TocsinError as error:
            raise Violation(f"the broker does not start again: {error}") from error
        disk.cut_at = None
        self._is_unsure = False
        self.process = process
        world.trace(f"{self.host} starts, its log ends with {process.node.store.last_seq}")
        process.start()
        if self.access is not None:
            self.access.started(process)
        if self.member is not None:
            self.member.started(process)

    def _may_be_damaged(self) -> None:
        """A power cut, and a write that failed, leave the end of the log unsure anyway."""
        is_confirmed = self.checks.log.is_confirmed and self.box_checks.log.is_confirmed
        is_sure = self.crashes > 0 and not self._is_unsure and is_confirmed
        if is_sure and self.world.fault(self.plan.damage):
            room, self.disk.bytes_max, self.disk.cut_at = self.disk.bytes_max, None, None
            stays = self.member is None and self._damage_random.random() < DAMAGE_STAYS
            for _ in range(FLIPS):
                may_stay_in = DIRECTORY if stays and not self.checks.log.unreadable else None
                unreadable = flip_a_bit(
                    self.world, self._damage_random, self.disk, may_stay_in=may_stay_in
                )
                self.checks.log.unreadable.update(unreadable)
            self.disk.bytes_max = room

    def _new_process(self) -> Process:
        return Process(
            self.world,
            self.network,
            self.clock,
            self.disk,
            self._planned,
            host=self.host,
            disk_ms_max=self.plan.disk_ms_max,
            requests=self._requests,
            new_id=lambda: f"{self._ids.getrandbits(96):024x}",
            on_end=self._ended,
        )

    def _open(self, process: Process) -> None:
        node = self._open_node(process, DIRECTORY, self.plan.options, self.checks)
        node.perform[do.Push] = self.delivery.push
        node.perform[do.Handshake] = self.delivery.shake_hands
        node.perform[do.CloseSubscription] = self.delivery.close_subscription
        if self.access is not None:
            self.access.begin(process, node)
        process.services = Services(
            node, self.host, self.plan, lambda: self._open_boxes(process), self.access
        )
        if self.disk.has_files(BOXES_DIRECTORY):
            process.services.mailboxes.open()

    def _open_boxes(self, process: Process) -> CheckedPort:
        node = self._open_node(process, BOXES_DIRECTORY, self.box_options, self.box_checks)
        node.wake()
        return node.port

    def _open_node(
        self, process: Process, directory: str, options: BrokerOptions, checks: DeliveryCheck
    ) -> SimNode:
        store = self._open_store(directory)
        reader = store.reader()
        checks.log.compare(store, reader)
        snapshot = load_snapshot(store, options)
        is_main = not process.nodes
        if is_main:
            self.check_service_state(snapshot)
        access = self._access_of(process, snapshot, is_main=is_main)
        checks.recovered(snapshot, dead_letters(reader))
        broker = Broker(
            options,
            new_id=process.new_id,
            jitter=process.jitter,
            is_trusted=checks.trusted.__contains__,
            permit_of=lambda owner: access.permit(owner, Action.SUBSCRIBE),
        )
        if is_main:
            self.clock.start(may_jump=CLOCK in snapshot.cursors)
        now_ns = self.clock.steady_ns
        lower_bound_ns = 0 if is_main else process.node.broker.clock.lower_bound_ns(now_ns)
        broker.recover(snapshot, now_ns, lower_bound_ns=lower_bound_ns)
        node = SimNode(process, options, broker, store, checks, access)
        process.nodes.append(node)
        return node

    def _access_of(self, process: Process, snapshot: Snapshot, *, is_main: bool) -> Access:
        if not is_main:
            return self._access if self.access is None else BoxAccess(self._access)
        if self.access is not None:
            self.access.kept.recovered(snapshot.service_state)
            self._access = self.access.new_policy(process)
        return self._access

    def _open_store(self, directory: str) -> EventStore:
        if self._shared is not None and directory == DIRECTORY:
            return self._shared.open()
        return Store.open(directory, vfs=self.disk.name)

    def _ended(self, kind: CrashKind) -> None:
        """A process is over; the next one starts a little later."""
        world, process = self.world, self.process
        world.seen[kind.value] += 1
        self.crashes += 1
        self.process = None
        self._is_unsure |= kind is CrashKind.POWER_CUT
        if kind is CrashKind.POWER_CUT:
            self.disk.crash(world.random)
        else:
            self.disk.kill()
        for node in process.nodes if process is not None else ():
            for stream in list(node.streams.values()):
                stream.end("the process is gone")
        world.soon(1, DOWN_MS_MAX, self.start)

    # Who clients are

    def principal_of(self, who: str) -> str:
        """Whose credentials a client has; empty where nobody needs any."""
        return "" if self.access is None else self.access.principal_of(who)

    def session(self, principal: str, endpoint: str, peer: str = "") -> Session:
        """As a listener gives it to what a principal sends."""
        if self.access is None:
            return anonymous(endpoint, peer)
        return self.access.session(principal, endpoint, peer)

    def link_session(self, host: str, peer: str) -> Session | None:
        """Who is at the other end of a connection with another broker; None if it is refused."""
        if self.access is None:
            return anonymous("link", peer)
        return self.access.link_session(host, peer)

    def link_end_check(self, session: Session) -> LinkEndCheck | None:
        access = None if self.access is None else self.access.links
        return None if access is None else LinkEndCheck(access, session)

    def headers(self, principal: str) -> dict[str, str]:
        """What a principal's requests have beside the rest."""
        header = None if self.access is None else self.access.header(principal)
        return {} if header is None else {"authorization": header}

    def may_refuse(self, status: int) -> bool:
        """True if this says that somebody has no right, where that may be."""
        return self.access is not None and status in REFUSALS

    def gives_up(self) -> bool:
        """Somebody was refused: at times they do not try that again. In the end all is allowed."""
        access = self.access
        return access is not None and not self.world.calm and access.random.random() < GIVES_UP

    # What clients call

    @property
    def node(self) -> SimNode | None:
        return None if self.process is None else self.process.node

    @property
    def services(self) -> Services | None:
        return None if self.process is None else self.process.services

    def call(
        self,
        work: Callable[[Services], Coroutine[Any, Any, Any]],
        answer: Callable[[object], None],
    ) -> SimTask | None:
        """A request arrives. None if nobody is there, or there is nothing to wait for."""
        return None if self.process is None else self.process.call(work, answer)

    def handle(self, request: Request, respond: Callable[[Response], None]) -> None:
        if self.process is not None:
            self.process.handle(request, respond)

    def accept_link(self, transport: Transport) -> Receiver | None:
        links = None if self.services is None else self.services.links
        return None if links is None else links.accept(transport)

    def dead_letters(self) -> list[DeadLetter]:
        return [] if self.node is None else self.node.dead_letters()

    def reached(self, point: CrashPoint) -> None:
        if self.process is not None:
            self.process.reached(point)


def _ignore(_: object) -> None:
    """Until somebody looks at what a start finds."""
