"""Broker: the source over HTTP, from a running broker's archive and log as Arrow."""

from __future__ import annotations

import http.client
import json
import logging
import random
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final
from urllib.parse import quote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.archive.record import SCHEMA
from tocsin.archive.selection import paths
from tocsin.credentials.lookup import ClientCertificate, Credentials, Origin
from tocsin.errors import BrokerRefused, CannotReachBroker
from tocsin.errors.archive import BadArchiveFile
from tocsin.errors.spark import BadSourceOption, NotArrow
from tocsin.pipeline.source.options import Options
from tocsin.pipeline.source.plan import Extent, Share, cut_evenly, gone
from tocsin.wire.api.arrow import CHECKED, FIRST, HEAD, MEDIA_TYPE, NEXT

# What a broker gives in one answer: a lost connection costs at most that.
EVENTS_PER_CALL: Final = 100_000
WAIT_S_MAX: Final = 20.0
PROBLEM_BYTES_MAX: Final = 65_536
BUSY: Final = frozenset({429, 502, 503, 504})

_SEQ: Final = SCHEMA.field("seq")
_log: Final = logging.getLogger(__name__)


class _Lost(Exception):
    """The answer did not come, or not whole; asking again may help."""


class _Damaged(Exception):
    """A file of the broker's archive is bad; what it should hold goes through this event."""

    def __init__(self, words: str, through: int) -> None:
        super().__init__(words)
        self.through = through


class Broker:
    """A broker that every executor can reach."""

    def __init__(self, options: Options) -> None:
        self._options = options
        address = urlsplit(options.path)
        if not address.hostname:
            raise BadSourceOption(
                f"{options.path} names no host", remedy="Write it as http://127.0.0.1:8400."
            )
        self._warned: set[str] = set()

    def extent(self) -> Extent:
        def ask() -> Extent:
            with self._answer("/events?after=0&limit=0") as answer:
                return Extent(_number(answer, FIRST), _number(answer, HEAD))

        return self._persistently(ask)

    def shares(self, after: int, through: int) -> list[Share]:
        first = self.extent().first
        if after + 1 < first and through > after:
            after = self._passed_over(after, min(first - 1, through))
        rows = self._options.rows_per_partition
        return [Share(low, high) for low, high in cut_evenly(after, through, rows)]

    def whole_until(self, after: int, through: int) -> int:
        """A broker answers for any range alike."""
        return through

    def batches(self, share: Share, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Each event once, however often the connection is lost."""
        reached, tries = share.after, 0
        # Whole or not at all: half of a damaged file would be taken for all of it.
        is_checked = self._options.skips_bad_files
        while reached < share.through:
            try:
                answer = self._call(reached, share.through, wanted, is_checked=is_checked)
                for batch, last in answer:
                    tries = 0
                    reached = last
                    if batch is not None:
                        yield batch
            except _Lost as lost:
                tries += 1
                if tries > self._options.retries:
                    raise self._unreachable(lost) from lost
                # It may have been for a damaged file: one that is checked is named.
                is_checked = True
                _wait(tries)
            except _Damaged as damaged:
                reached = self._after_damage(damaged, reached)

    def _call(
        self, after: int, through: int, wanted: pa.Schema, *, is_checked: bool
    ) -> Iterator[tuple[pa.RecordBatch | None, int]]:
        """The batches of one answer, each with the event through which it goes.

        An answer that begins behind a hole is not read: the limit counts from where it begins, so
        the rest is requested again.
        """
        # The numbers show how far a broken answer came, so they are always requested.
        asked = wanted if "seq" in wanted.names else wanted.append(_SEQ)
        limit = min(through - after, EVENTS_PER_CALL)
        target = f"/events?after={after}&limit={limit}&columns={quote(','.join(paths(asked)))}"
        target += f"&{CHECKED}=yes" if is_checked else ""
        with self._answer(target) as answer:
            first, next_ = _number(answer, FIRST), _number(answer, NEXT)
            if first > after + 1:
                yield None, self._passed_over(after, min(first - 1, through))
                return
            with _read_errors(), closing(pa.PythonFile(answer, "r")) as file:
                stream = pa.ipc.open_stream(file)
                while True:
                    try:
                        batch = stream.read_next_batch()
                    except StopIteration:
                        break
                    if batch.num_rows:
                        last = pc.max(batch.column("seq")).as_py()
                        given = batch if last <= through else _cut(batch, through)
                        yield self._fitted(given, wanted), last
        if next_ <= after:
            raise _Lost(f"it gave nothing after event {after}")
        yield None, next_

    def _fitted(self, batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
        try:
            chosen = batch.select(wanted.names)
            if chosen.schema.equals(wanted):
                return chosen
            return chosen.cast(wanted)
        except (KeyError, pa.ArrowException) as error:
            raise self._not_arrow(f"its columns are not those asked for ({error})") from error

    def _passed_over(self, after: int, last: int) -> int:
        """The end of a hole, which is logged, or raised as an error."""
        if not self._options.skips_holes:
            raise gone(self._options.path, [(after + 1, last)])
        self._warn_once(f"events {after + 1} to {last} are gone from the broker: passed over")
        return last

    def _after_damage(self, damaged: _Damaged, reached: int) -> int:
        """Where to go on without a file, which is logged, or raised as an error."""
        last = damaged.through
        if self._options.skips_bad_files and last > reached:
            self._warn_once(f"a file was passed over, events {reached + 1} to {last}: {damaged}")
            return last
        error = BadArchiveFile(self._options.path, str(damaged))
        error.add_note("Or read what is left without it: option bad_files=skip.")
        raise error from damaged

    @contextmanager
    def _answer(self, target: str) -> Iterator[http.client.HTTPResponse]:
        """The answer, known to be Arrow, and its body still to be read."""
        credentials = self._credentials()
        headers = {"Accept": MEDIA_TYPE}
        if (token := credentials.token()) is not None:
            headers["Authorization"] = f"Bearer {token.reveal()}"
        with closing(self._connection(credentials.certificate)) as connection:
            try:
                connection.request("GET", target, headers=headers)
                answer = connection.getresponse()
            except ssl.SSLCertVerificationError as error:
                raise CannotReachBroker(
                    f"the certificate of {self._options.path} is not trusted: "
                    f"{error.verify_message}",
                    remedy="Name the PEM file of its authority, to the source with the option "
                    "ca_file, to a command with --ca-file or TOCSIN_CA_FILE.",
                ) from error
            except (OSError, http.client.HTTPException) as error:
                raise _Lost(_words(error)) from error
            if answer.status != 200:
                self._refused(answer)
            kind = answer.headers.get_content_type()
            if kind != MEDIA_TYPE:
                raise self._not_arrow(f"it answers with {kind}")
            yield answer

    def _credentials(self) -> Credentials:
        """Of where this runs, which may be an executor: files are read there."""
        address = urlsplit(self._options.path)
        assert address.hostname is not None
        port = address.port or (443 if address.scheme == "https" else 80)
        return Credentials(
            Origin(address.scheme, address.hostname, port),
            token_file=self._options.token_file or None,
            client_certificate=self._options.client_cert or None,
            client_key=self._options.client_key or None,
        )

    def _connection(self, shown: ClientCertificate | None) -> http.client.HTTPConnection:
        address = urlsplit(self._options.path)
        assert address.hostname is not None
        timeout_s = self._options.timeout_s
        if address.scheme == "http":
            return http.client.HTTPConnection(address.hostname, address.port, timeout=timeout_s)
        try:
            context = ssl.create_default_context(cafile=self._options.ca_file or None)
        except (OSError, ssl.SSLError) as error:
            raise BadSourceOption(
                f"ca_file, {self._options.ca_file}, cannot be read: {_words(error)}",
                remedy="Name a PEM file of certificates that every executor can read.",
            ) from error
        if shown is not None:
            _show(context, shown)
        return http.client.HTTPSConnection(
            address.hostname, address.port, timeout=timeout_s, context=context
        )

    def _refused(self, answer: http.client.HTTPResponse) -> None:
        body = answer.read(PROBLEM_BYTES_MAX)
        if answer.status in BUSY:
            raise _Lost(f"it answered {answer.status} {answer.reason}")
        try:
            content = json.loads(body)
            problem, remedy, code = content["detail"], content["remedy"], content["code"]
        except (ValueError, TypeError, KeyError):
            raise self._not_arrow(f"it answers {answer.status} {answer.reason}") from None
        if code == BadArchiveFile.code and NEXT in answer.headers:
            raise _Damaged(problem, _number(answer, NEXT))
        raise BrokerRefused(problem, remedy=remedy, status=answer.status, broker_code=code)

    def _not_arrow(self, what: str) -> NotArrow:
        return NotArrow(
            f"what is at {self._options.path} does not give events as Arrow: {what}",
            remedy="Name the HTTP address of a Tocsin broker of this version.",
        )

    def _unreachable(self, lost: _Lost) -> CannotReachBroker:
        tries = self._options.retries + 1
        return CannotReachBroker(
            f"the broker at {self._options.path} did not answer in {tries} tries: {lost}",
            remedy="Start it again; the query goes on from its checkpoint. A slow one may need "
            "a larger timeout_s or more retries.",
        )

    def _persistently(self, ask: Callable[[], Extent]) -> Extent:
        tries = 0
        while True:
            try:
                return ask()
            except _Lost as lost:
                tries += 1
                if tries > self._options.retries:
                    raise self._unreachable(lost) from lost
                _wait(tries)

    def _warn_once(self, words: str) -> None:
        """To the log, once."""
        if words not in self._warned:
            self._warned.add(words)
            _log.warning(words)


def _no_password() -> str:
    raise BadSourceOption(
        "the private key of client_cert is encrypted with a password",
        remedy="Write it without: openssl pkey -in ENCRYPTED -out KEY, and chmod 600 KEY.",
    )


def _show(context: ssl.SSLContext, shown: ClientCertificate) -> None:
    try:
        # Asked for a password on a terminal, an executor would wait for ever.
        context.load_cert_chain(shown.certificate, shown.key, password=_no_password)
    except OSError as error:  # ssl.SSLError is one
        raise BadSourceOption(
            f"client_cert, {shown.certificate}, cannot be used: {_words(error)}",
            remedy="Name PEM files of a certificate and its key that every executor can read.",
        ) from error


@contextmanager
def _read_errors() -> Iterator[None]:
    """A body that ends too early, or comes too slowly, is an answer that was lost."""
    try:
        yield
    except (OSError, http.client.HTTPException, pa.ArrowInvalid) as error:
        raise _Lost(f"its answer broke off: {_words(error)}") from error


def _cut(batch: pa.RecordBatch, through: int) -> pa.RecordBatch:
    """What belongs to a share: the rest is another's."""
    return batch.filter(pc.less_equal(batch.column("seq"), through))


def _number(answer: http.client.HTTPResponse, name: str) -> int:
    text = answer.headers.get(name, "")
    if not text.isdigit():
        raise NotArrow(
            f"the answer has no {name}", remedy="Name the address of a Tocsin broker itself."
        )
    return int(text)


def _wait(tries: int) -> None:
    """Doubling, capped, and not all executors at the same moment."""
    time.sleep(min(WAIT_S_MAX, 0.25 * 2**tries) * random.uniform(0.5, 1.0))


def _words(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
