CREATE TEMP TABLE runs AS
WITH by_run AS (
    SELECT
        run, count(*) FILTER (last) AS known, $state_counts,
        count(DISTINCT id) FILTER (fault IS NOT NULL AND NOT last) AS retried,
        sum(duration_s) AS busy_s,
        sum(duration_s) FILTER (state IN ('failed', 'retrying', 'cancelled')) AS wasted_s,
        $used_by_run
    FROM attempts
    GROUP BY run
), joined AS (
    SELECT
        told.*, coalesce(a.known, 0) AS known, coalesce(a.retried, 0) AS retried,
        $filled_counts,
        a.busy_s, a.wasted_s, $run_uses,
        coalesce(announced, CASE WHEN has_plan THEN coalesce(a.known, 0) END) AS planned
    FROM told_runs AS told LEFT JOIN by_run AS a USING (run)
)
SELECT $run_columns
FROM (
    SELECT *, CASE
        WHEN state = 'completed' AND n_lost = 0 THEN 1.0
        WHEN planned IS NULL AND state <> 'completed'
            THEN CASE WHEN told_progress BETWEEN 0 AND 1 THEN told_progress END
        WHEN greatest(coalesce(planned, 0), known) > 0
            THEN round_even((
                n_succeeded + n_cached + CASE
                    WHEN state <> 'completed' AND (
                        state IN ('failed', 'aborted') OR n_failed > 0 OR n_cancelled > 0
                    ) THEN 0 ELSE n_skipped END
                ) / greatest(coalesce(planned, 0), known), 4)
        END::DOUBLE AS progress
    FROM joined
)
