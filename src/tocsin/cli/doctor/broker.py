"""Checks of a running broker, one function each: settings, clock, log, sinks."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple

from tocsin import __version__
from tocsin.cli.failure import error_text
from tocsin.cli.render import plural
from tocsin.cli.rest import Rest
from tocsin.errors import TocsinError

SKEW_S_MAX = 2.0
SLOW_SHOWN_MAX = 5
DEAD_COUNTED_MAX = 1_000
CORRUPT_FIGURE = "tocsin_records_corrupt_total"
FREE_FIGURE = "tocsin_disk_free_bytes"
FREE_MIN_FIGURE = "tocsin_disk_free_bytes_min"
FREE_BYTES_LOW = 2 << 30

Level = Literal["ok", "warn", "fail"]


class Finding(NamedTuple):
    """One line of the report."""

    level: Level
    subject: str
    message: str
    remedy: str = ""


def settings_findings() -> list[Finding]:
    """Which settings file there is, and whether it can be read."""
    from tocsin.config import find_file, load

    try:
        file = find_file(None, os.environ)
        load({}, os.environ, file)
    except TocsinError as error:
        return [Finding("fail", "settings", error.problem, error.remedy)]
    return [Finding("ok", "settings", f"{file}" if file else "no file; defaults and environment")]


def broker_findings(rest: Rest) -> list[Finding]:
    """Whether a broker answers, its version, whether it is ready, and its clock."""
    answer = rest.request("GET", "/livez")
    answer.value()
    found = [_version(rest, answer.headers.get("server", ""))]
    skew_s = _skew_s(answer.headers.get("date", ""))
    if skew_s is not None:
        level: Level = "ok" if abs(skew_s) <= SKEW_S_MAX else "warn"
        found.append(
            Finding(
                level,
                "clock",
                f"the broker's differs by {skew_s:+.0f} s",
                "Set both machines' clocks by NTP; `--since` and expiry depend on them.",
            )
        )
    ready = rest.request("GET", "/readyz")
    if ready.status != 200:
        problem = ready.body.decode("utf-8", "replace")[:300]
        found.append(Finding("fail", "ready", problem, "See the broker's own log."))
    else:
        for reason in ready.value()["reasons"]:
            found.append(Finding("warn", "ready", reason))
    return found


def access_findings(rest: Rest) -> list[Finding]:
    """Who may use the broker, and whether its audit log is written and whole."""
    auth = rest.get("/status").get("auth")
    if auth is None:
        return []  # an older broker
    if auth["mode"] == "open":
        message = "open: everybody who reaches it may do everything; no audit log"
        return [Finding("ok", "access", message)]
    tls = "TLS" if auth["tls"] else "no TLS"
    found = [Finding("ok", "access", f"clients sign in, {tls}")]
    if auth["problem"]:
        remedy = "Make room where the data directory is; `tocsin access audit` goes on then."
        return [*found, Finding("fail", "audit log", auth["problem"], remedy)]
    if not auth["audit"]:
        return [*found, Finding("warn", "audit log", "off", "Leave out audit.enabled.")]
    answer = rest.request("GET", "/access/audit/verify")
    if answer.status != 200:  # who may read the status may not read this
        return [*found, Finding("ok", "audit log", "on")]
    checked = answer.value()
    if checked["whole"]:
        return [*found, Finding("ok", "audit log", plural(checked["lines"], "line"))]
    remedy = "`tocsin access audit --verify` names each place."
    return [*found, Finding("fail", "audit log", "was changed or cut", remedy)]


def _version(rest: Rest, server: str) -> Finding:
    if server.partition("/")[0].lower() != "tocsin":
        remedy = "Give the address of a Tocsin broker with --broker."
        message = f"{rest.address} is not a Tocsin broker, or does not identify itself as one"
        return Finding("warn", "broker", message, remedy)
    version = rest.get("/openapi.json")["info"]["version"]
    if version != __version__:
        remedy = "Install the same version on both sides."
        message = f"{rest.address} is {version}, this is {__version__}"
        return Finding("warn", "broker", message, remedy)
    return Finding("ok", "broker", f"{rest.address} answers, version {version}")


def _skew_s(date: str) -> float | None:
    """How far ahead the broker's clock is. Its Date has whole seconds, cut, not rounded."""
    try:
        ahead_s = (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        return None
    return min(0.0, ahead_s + 1) if ahead_s < 0 else ahead_s


def subscription_findings(rest: Rest) -> list[Finding]:
    """Slow consumers and sinks that do not answer, by name."""
    found: list[Finding] = []
    count = 0
    for view in rest.pages("/subscriptions", "subscriptions", sort="behind"):
        count += 1
        trouble = _trouble(view)
        if trouble and len(found) < SLOW_SHOWN_MAX:
            remedy = f"See `tocsin subs show {view['id']}`."
            found.append(Finding("warn", "subscription", f"{view['id']} {trouble}", remedy))
    level: Level = "warn" if found else "ok"
    return [Finding(level, "subscriptions", plural(count, "subscription")), *found]


def _trouble(view: dict[str, Any]) -> str | None:
    sink = view.get("sink")
    if view.get("sink_state") in ("busy", "failing", "unreachable"):
        return f"to {sink}: {view['sink_state']}: {view.get('last_error')}"
    if view.get("state") in ("paused", "pending") and view.get("reason"):
        return f"to {sink} is {view['state']}: {view['reason']}"
    if view.get("lagging"):
        return f"to {sink} is {view.get('behind')} events behind"
    return None


def peer_findings(rest: Rest) -> list[Finding]:
    """The peers that the broker is to connect to, which it tries all the time, and why not."""
    answer = rest.request("GET", "/overlay?rows=0")
    if answer.status == 404:
        return []  # an older broker, or a service of boxes
    overlay = answer.value()
    found = [_peer(each) for each in overlay["peers"]]
    down = [each for each in overlay["neighbours"] if each["state"] == "down"]
    found += [_neighbour_down(each) for each in down]
    if found:
        return found
    up = sum(each["state"] == "up" for each in overlay["neighbours"])
    return [Finding("ok", "overlay", f"{plural(up, 'neighbour')}, no peers to connect to")]


def _peer(peer: dict[str, Any]) -> Finding:
    names, error = " or ".join(peer["addresses"]), peer["error"]
    if peer["state"] == "linked":
        return Finding("ok", "peer", f"{peer['used']} is linked, broker {peer['broker']}")
    if error is None:
        return Finding("warn", "peer", f"{names} is not linked yet", "See `tocsin overlay`.")
    errors = [each["error"] for each in peer["problems"]] or [error]
    why = "; ".join(f"{each['problem']} [{each['code']}]" for each in errors)
    return Finding("warn", "peer", f"{names}: {why}", error["remedy"])


def _neighbour_down(neighbour: dict[str, Any]) -> Finding:
    broker, error, lag = neighbour["broker"], neighbour["error"], neighbour["lag"]
    why = f": {error['problem']} [{error['code']}]" if error else ""
    waiting = f"; {plural(lag, 'event')} of the log wait for it" if lag else ""
    return Finding(
        "warn",
        "neighbour",
        f"broker {broker} is down since {neighbour['since']}{why}{waiting}",
        f"Start it again; if it is gone for good, `tocsin overlay forget {broker}`.",
    )


def log_findings(rest: Rest) -> list[Finding]:
    """Damaged records that the running broker came across."""
    damaged = int(_figure(rest, CORRUPT_FIGURE) or 0)
    if not damaged:
        return []
    message = f"{plural(damaged, 'record')} damaged, and not served"
    remedy = "The broker's own log names them; stop it and run `tocsin doctor --data DIR`."
    return [Finding("fail", "log", message, remedy)]


def space_findings(rest: Rest) -> list[Finding]:
    """How much room the running broker's disk has for events."""
    free, least = _figure(rest, FREE_FIGURE), _figure(rest, FREE_MIN_FIGURE)
    if free is None or least is None:
        return []  # an older broker, or a service of boxes
    level: Level = "ok" if free >= max(least, FREE_BYTES_LOW) else "warn"
    message = f"{free / 2**20:,.0f} MiB free where the broker stores events"
    if free < least:
        level = "fail"
        message += f"; below {least / 2**20:,.0f} MiB (log.free_bytes_min) it accepts none"
    return [Finding(level, "disk", message, "Make room, or lower log.retain_bytes.")]


def _figure(rest: Rest, name: str) -> float | None:
    """One figure of the broker's metrics."""
    lines = rest.request("GET", "/metrics").body.decode("utf-8", "replace").splitlines()
    found = (line.partition(" ") for line in lines)
    return next((float(value) for each, _, value in found if each == name), None)


def dead_letter_findings(rest: Rest) -> list[Finding]:
    """How many events were given up."""
    page = rest.get("/deadletters", limit=DEAD_COUNTED_MAX)
    count = len(page["deadletters"])
    if not count:
        return [Finding("ok", "dead letters", "none")]
    more = "at least " if page.get("next") is not None else ""
    remedy = "Look with `tocsin dlq ls`; send them again with `tocsin dlq redrive --all`."
    return [Finding("warn", "dead letters", f"{more}{count}", remedy)]


def unreachable_finding(error: TocsinError) -> Finding:
    """The broker does not answer."""
    return Finding(
        "fail", "broker", error_text(error).removeprefix("tocsin: ").split("\n")[0], error.remedy
    )
