"""The columns of each table, for every engine that makes it and every reader.

An `activity` is a kind of step, over all runs: the type that its engine gives, or else its own id.
One of them in one run has an `id`. A duration is in seconds; what nobody reported is null.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from tocsin.monitor.rules import CURRENT, GROWING
from tocsin.wire.api.run_views import ACTIVITY_STATES

MOMENT: Final = pa.timestamp("us", tz="UTC")
TEXT: Final = pa.string()
TEXTS: Final = pa.list_(pa.string())
WHOLE: Final = pa.int64()
NUMBER: Final = pa.float64()
YES_NO: Final = pa.bool_()

USE: Final = "use_"
USED: Final = tuple(f"{USE}{concept}" for concept in (*GROWING, *CURRENT))


def _table(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()])


_WHOSE: Final = {"workflow": TEXT, "activity": TEXT, "version": TEXT}

EVENTS: Final = _table(
    seq=WHOLE,
    received=MOMENT,
    at=MOMENT,
    id=TEXT,
    source=TEXT,
    type=TEXT,
    topic=TEXT,
    time=TEXT,
    subject=TEXT,
    datacontenttype=TEXT,
    dataschema=TEXT,
    extensions=TEXT,
    attributes=TEXT,
    data=pa.binary(),
    run=TEXT,
    workflow=TEXT,
    activity=TEXT,  # here it is the id, as the event has it
    attempt=pa.int32(),
    late_s=NUMBER,  # received so long after it happened; 0 where the clock that dated it is wrong
)

ACTIVITIES: Final = _table(
    run=TEXT,
    **_WHOSE,
    id=TEXT,
    attempt=pa.int32(),
    last=YES_NO,  # no other attempt followed
    state=TEXT,
    queued=MOMENT,
    started=MOMENT,
    ended=MOMENT,
    duration_s=NUMBER,
    waited_s=NUMBER,
    host=TEXT,
    exit_code=WHOLE,
    error=TEXT,
    trace=TEXT,
    fault=WHOLE,  # the same number: the same failure, seen again
    command=TEXT,
    log_file=TEXT,
    job=TEXT,
    container=TEXT,
    inputs=TEXTS,
    outputs=TEXTS,
    parents=TEXTS,
    input_bytes=WHOLE,
    output_bytes=WHOLE,
    external_bytes=WHOLE,
    skewed=YES_NO,  # its times are in two zones
    settled_seq=WHOLE,  # the event that gave it its state
    **dict.fromkeys(USED, NUMBER),
)

RUNS: Final = _table(
    run=TEXT,
    workflow=TEXT,
    version=TEXT,
    engine=TEXT,
    engine_version=TEXT,
    user=TEXT,
    host=TEXT,
    state=TEXT,
    created=MOMENT,
    started=MOMENT,
    ended=MOMENT,
    duration_s=NUMBER,
    last_event=MOMENT,
    parent=TEXT,
    error=TEXT,
    exit_code=WHOLE,
    command=TEXT,
    working_directory=TEXT,
    parameters=TEXT,
    planned=WHOLE,  # activities that were announced in all
    known=WHOLE,  # activities that an event named
    **{f"n_{state}": WHOLE for state in ACTIVITY_STATES},
    retried=WHOLE,  # activities that were tried again after a failure
    progress=NUMBER,
    busy_s=NUMBER,  # of all attempts together
    wasted_s=NUMBER,  # of the attempts that failed or were cancelled
    settled_seq=WHOLE,
    **dict.fromkeys(USED, NUMBER),
)

ACTIVITY_STATS: Final = _table(
    **_WHOSE,
    runs=WHOLE,
    count=WHOLE,  # attempts that ended, the failed ones included
    failed=WHOLE,
    cancelled=WHOLE,
    mean_s=NUMBER,  # from here to the histogram: of those that succeeded
    stddev_s=NUMBER,
    min_s=NUMBER,
    p10_s=NUMBER,
    p50_s=NUMBER,
    p90_s=NUMBER,
    p99_s=NUMBER,
    max_s=NUMBER,
    histogram=pa.list_(
        pa.struct([pa.field("low_s", NUMBER), pa.field("high_s", NUMBER), pa.field("count", WHOLE)])
    ),
    busy_s=NUMBER,  # all attempts that ended, together
    wasted_s=NUMBER,  # of those, what failed or was cancelled
    mean_waited_s=NUMBER,
    mean_cpu_s=NUMBER,
    mean_memory_bytes=NUMBER,
    max_memory_bytes=NUMBER,
    mean_read_bytes=NUMBER,
    mean_written_bytes=NUMBER,
    mean_input_bytes=NUMBER,
    first_ended=MOMENT,
    last_ended=MOMENT,
)

# target: duration_s, cpu_s, memory_bytes, read_bytes or written_bytes, as a straight line over
# the bytes of input: value = intercept + slope * input_bytes. Of activities that report no size the
# slope is null and the intercept is the mean.
COST_MODELS: Final = _table(
    **_WHOSE,
    target=TEXT,
    count=WHOLE,
    intercept=NUMBER,
    slope=NUMBER,
    r2=NUMBER,
    rmse=NUMBER,  # each value predicted from the others
    median_error=NUMBER,  # the median of |predicted - true| / true, predicted so
    input_min=NUMBER,
    input_max=NUMBER,
    mean=NUMBER,
)

ESTIMATES: Final = _table(
    run=TEXT,
    workflow=TEXT,
    version=TEXT,
    as_of=MOMENT,
    started=MOMENT,
    elapsed_s=NUMBER,
    done=WHOLE,
    total=WHOLE,
    remaining_low_s=NUMBER,  # one in ten ended sooner
    remaining_s=NUMBER,
    remaining_high_s=NUMBER,  # one in ten took longer
    ends=MOMENT,
    basis=TEXT,  # what it was made from, in words
    runs=WHOLE,  # how many past runs that were
)

FAILURES: Final = _table(
    run=TEXT,
    **_WHOSE,
    id=TEXT,
    attempt=pa.int32(),
    state=TEXT,
    ended=MOMENT,
    duration_s=NUMBER,
    host=TEXT,
    exit_code=WHOLE,
    error=TEXT,
    trace=TEXT,
    fault=WHOLE,
    seen=WHOLE,  # how often the same failure is in the archive, this one included
    seen_before=WHOLE,
    first_seen=MOMENT,
    seq=WHOLE,
    before=pa.list_(  # the last events of the run before it, the oldest first
        pa.struct(
            [
                pa.field("seq", WHOLE),
                pa.field("at", MOMENT),
                pa.field("type", TEXT),
                pa.field("activity", TEXT),
            ]
        )
    ),
)

EVOLUTION: Final = _table(
    workflow=TEXT,
    version=TEXT,
    previous=TEXT,
    first_seen=MOMENT,
    last_seen=MOMENT,
    runs=WHOLE,
    completed=WHOLE,
    failed=WHOLE,
    mean_s=NUMBER,  # of the runs that completed
    p50_s=NUMBER,
    p90_s=NUMBER,
    ratio=NUMBER,  # its median beside that of the version before
    changes=TEXTS,  # what was recorded as changed
    slower=TEXTS,  # activities whose median grew by a tenth or more, the worst first
    faster=TEXTS,
    added=TEXTS,  # activities that the version before did not have
    removed=TEXTS,
)

# One row an hour. `samples` are the messages with it.
HOST_USAGE: Final = _table(
    host=TEXT,
    hour=MOMENT,
    samples=WHOLE,
    attempts=WHOLE,  # that ended in the hour
    busy_s=NUMBER,
    mean_cpu_percent=NUMBER,
    max_cpu_percent=NUMBER,
    mean_memory_bytes=NUMBER,
    max_memory_bytes=NUMBER,
    cpu_s=NUMBER,
    read_bytes=NUMBER,
    written_bytes=NUMBER,
    mean_load=NUMBER,  # of hosts that an agent watches
)
ACTIVITY_USAGE: Final = _table(
    workflow=TEXT,
    activity=TEXT,
    hour=MOMENT,
    attempts=WHOLE,
    failed=WHOLE,
    busy_s=NUMBER,
    cpu_s=NUMBER,
    mean_memory_bytes=NUMBER,
    max_memory_bytes=NUMBER,
    read_bytes=NUMBER,
    written_bytes=NUMBER,
)

DELIVERIES: Final = _table(
    subscription=TEXT,
    sink=TEXT,
    protocol=TEXT,
    state=TEXT,  # as it was when last looked at
    sink_state=TEXT,
    first_seen=MOMENT,
    last_seen=MOMENT,
    samples=WHOLE,
    delivered=WHOLE,
    failed_attempts=WHOLE,
    dead=WHOLE,
    dropped=WHOLE,
    behind=WHOLE,  # now
    max_behind=WHOLE,
    mean_behind=NUMBER,
    per_hour=NUMBER,
    failing_share=NUMBER,  # of the attempts
    slow=YES_NO,  # it falls behind
    last_error=TEXT,
    reasons=pa.list_(  # why events were given up, the most frequent first
        pa.struct([pa.field("reason", TEXT), pa.field("count", WHOLE)])
    ),
)

DISCOVERIES: Final = _table(
    model=TEXT,
    request=TEXT,
    count=WHOLE,
    empty=WHOLE,  # questions that found nothing
    mean_found=NUMBER,
    mean_s=NUMBER,
    p50_s=NUMBER,
    p90_s=NUMBER,
    max_s=NUMBER,
    mean_brokers=NUMBER,
    mean_messages=NUMBER,
    shared=WHOLE,
    first_seen=MOMENT,
    last_seen=MOMENT,
)

QUARANTINE: Final = _table(
    file=TEXT,
    seq=WHOLE,
    received=MOMENT,
    id=TEXT,
    source=TEXT,
    type=TEXT,
    reason=TEXT,
    excerpt=TEXT,  # of the data, at most 200 characters
)

TABLES: Final[dict[str, pa.Schema]] = {
    "events": EVENTS,
    "activities": ACTIVITIES,
    "runs": RUNS,
    "activity_stats": ACTIVITY_STATS,
    "cost_models": COST_MODELS,
    "estimates": ESTIMATES,
    "failures": FAILURES,
    "evolution": EVOLUTION,
    "host_usage": HOST_USAGE,
    "activity_usage": ACTIVITY_USAGE,
    "deliveries": DELIVERIES,
    "discoveries": DISCOVERIES,
    "quarantine": QUARANTINE,
}
