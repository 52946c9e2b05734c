"""Metrics of access: what was refused, which quotas were reached, and how the audit log fares."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric

from tocsin.access.decision import Action
from tocsin.access.quotas.rules import Quota
from tocsin.drivers.access.access_control import AccessControl


def access_metrics(access: AccessControl) -> Iterator[Metric]:
    """Also where nobody signs in: there is nothing to count then."""
    refused = CounterMetricFamily(
        "tocsin_access_refused", "Decisions against whoever asked.", labels=["action"]
    )
    for action in Action:
        refused.add_metric([str(action)], access.service.policy.refused[action])
    yield refused
    reached = CounterMetricFamily(
        "tocsin_quota_reached", "Requests refused because of a quota.", labels=["quota"]
    )
    for quota in Quota:
        reached.add_metric([str(quota)], access.quotas.reached[quota])
    sign_in = access.sign_in
    waiting = 0 if sign_in is None else sign_in.attempts.refused_count
    reached.add_metric(["failed_sign_ins"], waiting)
    yield reached
    yield CounterMetricFamily(
        "tocsin_sign_in_failures",
        "Credentials shown that were not valid.",
        value=0 if sign_in is None else sign_in.failures,
    )
    audit = access.audit
    for name, words, value in (
        ("written", "Records written to the audit log.", 0 if audit is None else audit.written),
        ("summed", "Decisions that were summed up there.", 0 if audit is None else audit.summed),
        ("lost", "Records that could not be written.", 0 if audit is None else audit.lost),
    ):
        yield CounterMetricFamily(f"tocsin_audit_records_{name}", words, value=value)
