"""Resources and continuous requests as the API shows them."""

from __future__ import annotations

from tocsin.event.instant import NS_PER_S, iso_duration, rfc3339, rfc3339_or_none
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.services.discovery.answer import attributes_view
from tocsin.services.discovery.kept_resource import KeptResource
from tocsin.services.discovery.watch import Watch
from tocsin.wire.api.resource_views import DiscoveryInfo, OverlayOptions, ResourceInfo


def resource_info(kept: KeptResource) -> ResourceInfo:
    return ResourceInfo(
        id=kept.id,
        model=kept.model,
        advertisement=kept.advertisement,
        attributes=attributes_view(kept.values),
        kind=kept.kind or None,
        address=kept.address or None,
        lease=None if kept.lease_ns is None else iso_duration(kept.lease_ns),
        registered=rfc3339(kept.registered_ns),
        updated=rfc3339_or_none(kept.updated_ns),
        expires=rfc3339_or_none(kept.expires_ns),
    )


def watch_info(watch: Watch) -> DiscoveryInfo:
    asked, summary = watch.asked, watch.summary
    return DiscoveryInfo(
        id=watch.id,
        stream=f"/discoveries/{watch.id}/stream",
        request=asked.request,
        model=asked.model,
        resources=len(watch.resources),
        created=rfc3339(watch.created_ns),
        expires=rfc3339_or_none(watch.expires_ns),
        why_empty=(summary.why_empty or None) if summary is not None else None,
    )


def options_info(options: DiscoveryOptions) -> OverlayOptions:
    return OverlayOptions(options.similarity, options.direct, options.cache_expiry_ns / NS_PER_S)
