-- Runs, but for what their activities add up to.
CREATE TEMP TABLE told_runs AS
WITH settled AS (
    SELECT
        *, coalesce(started, active_first) AS began,
        $run_phase AS phase, $run_moment AS moment, $run_state AS named
    FROM run_cells
), told AS (
    SELECT *, CASE
        WHEN state IS NULL THEN 'created'
        WHEN phase >= $ending
            AND started < ended AND ended < started_last
            AND NOT is_zone_apart(seconds_between(started, started_last)) THEN 'running'
        WHEN named = 'idle' AND active_last > coalesce(idle_last, moment) THEN 'running'
        ELSE named END AS told_state
    FROM settled
), shown AS (
    SELECT *, CASE
        WHEN told_state IN ('completed', 'failed', 'aborted') THEN told_state
        WHEN told_state = 'suspended' AND heartbeat_s IS NULL THEN told_state
        WHEN epoch_us($now) - epoch_us(last_received) > 1e6 * (CASE
            WHEN heartbeat_s > 0 AND heartbeat_s <= $heartbeat_s_max
            THEN $heartbeats_max * heartbeat_s ELSE $silence_s END) THEN 'lost'
        ELSE told_state END AS shown_state
    FROM told
), timed AS (
    SELECT *,
        shown_state IN ('completed', 'failed', 'aborted') AS is_over,
        CASE
            WHEN shown_state IN ('completed', 'failed', 'aborted') THEN coalesce(ended, began)
            WHEN shown_state = 'lost' THEN coalesce(last_event, began)
            ELSE $now END AS until
    FROM shown
)
SELECT
    run, coalesce(workflow, '') AS workflow, coalesce(version, '') AS version,
    coalesce(engine, '') AS engine, coalesce(engine_version, '') AS engine_version,
    coalesce("user", '') AS "user", coalesce(host, '') AS host,
    shown_state AS state, created, began AS started,
    CASE WHEN is_over THEN ended END AS ended,
    CASE WHEN until >= began THEN seconds_between(began, until) END AS duration_s,
    last_event, parent, error, exit_code, command, working_directory, parameters,
    CASE
        WHEN planned_total >= 0 THEN planned_total
        ELSE (
            SELECT sum(n) FROM (
                SELECT unnest(map_values(
                    TRY_CAST(TRY_CAST(planned_counts AS JSON) AS MAP(VARCHAR, BIGINT)))) AS n)
            WHERE n BETWEEN 0 AND 1000000000
        )::BIGINT END AS announced,
    has_plan, progress AS told_progress, $run_seq AS settled_seq,
    $own_uses
FROM timed
