-- One row an attempt, as `monitor.states` and `monitor.showing` read it.
CREATE TEMP TABLE attempts AS
WITH joined AS (
    SELECT cells.*, lists.inputs, lists.outputs, lists.parents
    FROM attempt_cells AS cells LEFT JOIN attempt_lists AS lists USING (run, id, attempt)
), repeated AS (
    SELECT run, id FROM attempt_cells GROUP BY run, id HAVING count(*) > 1
), whole AS (
    SELECT *, true AS last FROM joined ANTI JOIN repeated USING (run, id)
    UNION ALL BY NAME
    SELECT
        * REPLACE (
            last_value(version IGNORE NULLS) OVER so_far AS version,
            last_value(container IGNORE NULLS) OVER so_far AS container,
            last_value(external_bytes IGNORE NULLS) OVER so_far AS external_bytes,
            last_value(inputs IGNORE NULLS) OVER so_far AS inputs,
            last_value(outputs IGNORE NULLS) OVER so_far AS outputs,
            last_value(parents IGNORE NULLS) OVER so_far AS parents,
            arg_max(type, type_ord) OVER (PARTITION BY run, id) AS type),
        attempt = max(attempt) OVER (PARTITION BY run, id) AS last
    FROM joined SEMI JOIN repeated USING (run, id)
    WINDOW so_far AS (
        PARTITION BY run, id ORDER BY attempt
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
), settled AS (
    SELECT *,
        $activity_phase AS phase, $activity_moment AS moment, $activity_state AS named,
        coalesce(started, nullif(told_start, $unreadable)) AS began,
        CASE WHEN started IS NULL AND ended IS NOT NULL
            THEN coalesce(nullif(told_end, $unreadable), ended) ELSE ended END AS over_at,
        CASE WHEN told_duration_s >= 0 THEN told_duration_s END AS told_s,
        is_zone_apart(seconds_between(started, started_last))
            OR is_zone_apart(seconds_between(ended_first, ended)) AS two_zones
    FROM whole
), paired AS (
    SELECT *,
        CASE WHEN two_zones AND began IS NOT NULL AND over_at IS NOT NULL THEN
            list_sort([
                p FOR p IN [
                    apart(began, coalesce(ended_first, over_at)),
                    apart(began, over_at),
                    apart(coalesce(started_last, began), coalesce(ended_first, over_at)),
                    apart(coalesce(started_last, began), over_at)
                ] IF p.apart >= 0])[1]
        END AS pair,
        two_zones AND began IS NOT NULL AND over_at IS NOT NULL AS is_mended,
        coalesce(coalesce(ended_first, over_at) < started_last AND started_last <= over_at, false)
            AS is_again
    FROM settled
), timed AS (
    SELECT * REPLACE (
            CASE
                WHEN pair IS NOT NULL THEN make_timestamptz(pair.s)
                WHEN NOT is_mended AND is_again THEN started_last
                ELSE began END AS began,
            CASE WHEN pair IS NOT NULL THEN make_timestamptz(pair.e) ELSE over_at END AS over_at)
    FROM paired
), measured AS (
    SELECT *,
        CASE WHEN over_at >= began THEN seconds_between(began, over_at) END AS own_s,
        CASE
            WHEN state IS NULL THEN 'planned'
            WHEN named = 'held' AND queued_last > coalesce(held_last, moment) THEN 'queued'
            WHEN named = 'succeeded' AND phase = $ending AND exit_code <> 0 THEN 'failed'
            ELSE named END AS own_state
    FROM timed
), lasting AS (
    SELECT *,
        CASE
            WHEN told_s IS NULL OR over_at IS NULL THEN own_s
            WHEN own_s IS NULL OR is_zone_apart(own_s - told_s) THEN told_s
            ELSE own_s END AS duration_s,
        two_zones OR (
            told_s IS NOT NULL AND over_at IS NOT NULL AND is_zone_apart(own_s - told_s)
        ) AS skewed,
        CASE WHEN own_state IN ('failed', 'retrying') THEN
            concat(
                coalesce(type, ''), chr(0), coalesce(exit_code::VARCHAR, 'None'), chr(0),
                plain_words(coalesce(
                    CASE WHEN error <> '' THEN lines_of(error)[1]
                    ELSE lines_of(coalesce(nullif(trace, ''), log, ''))[-1] END,
                    '')))
        END AS fault_words
    FROM measured
)
SELECT
    run, coalesce(runs.workflow, '') AS workflow,
    coalesce(nullif(a.type, ''), a.id) AS activity,
    coalesce(nullif(a.version, ''), runs.version, '') AS version,
    a.id, a.attempt, a.last,
    CASE
        WHEN NOT a.last THEN
            CASE WHEN own_state IN ('running', 'queued', 'held') THEN 'retrying' ELSE own_state END
        WHEN runs.state IN ('completed', 'failed', 'aborted') AND own_state = 'retrying'
            THEN 'failed'
        WHEN runs.state IN ('completed', 'failed', 'aborted')
            AND own_state IN ('running', 'held') THEN 'lost'
        WHEN runs.state = 'lost' AND own_state IN ('running', 'held', 'retrying') THEN 'lost'
        ELSE own_state END AS state,
    a.queued, a.began AS started, a.over_at AS ended, a.duration_s,
    CASE WHEN a.began >= a.queued THEN seconds_between(a.queued, a.began) END AS waited_s,
    a.host, a.exit_code, a.error, a.trace, fault_of.fault, a.command, a.log_file, a.job,
    a.container, a.inputs, a.outputs, a.parents, a.input_bytes, a.output_bytes, a.external_bytes,
    a.skewed, $activity_seq AS settled_seq, $activity_uses
FROM lasting AS a
LEFT JOIN told_runs AS runs USING (run)
LEFT JOIN (
    SELECT fault_words, fault_number(fault_words) AS fault
    FROM (SELECT DISTINCT fault_words FROM lasting WHERE fault_words IS NOT NULL)
) AS fault_of USING (fault_words)
