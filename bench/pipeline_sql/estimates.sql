-- How long each run under way still takes, from past runs of its workflow when they were as far.
CREATE TEMP TABLE estimates AS
WITH under_way AS (
    SELECT *, coalesce(started, created) AS begun,
        n_succeeded + n_failed + n_cancelled + n_skipped + n_cached AS done
    FROM runs WHERE state IN ('running', 'idle', 'suspended')
), past AS (
    SELECT * FROM (
        SELECT
            workflow, version, run AS past, epoch_us(started) AS began,
            epoch_us(ended) AS finished,
            row_number() OVER (
                PARTITION BY workflow, version ORDER BY ended DESC, run) AS of_version,
            row_number() OVER (PARTITION BY workflow ORDER BY ended DESC, run) AS of_any
        FROM runs SEMI JOIN under_way USING (workflow)
        WHERE state = 'completed' AND started IS NOT NULL AND ended IS NOT NULL
    )
    WHERE of_version <= $past_max OR of_any <= $past_max
), ends AS (
    SELECT run, ended FROM attempts
    WHERE last AND state IN ('succeeded', 'failed', 'cancelled', 'skipped', 'cached')
), versions AS (
    SELECT workflow, version, count(*) >= $past_enough AS is_known
    FROM past GROUP BY workflow, version
), live AS (
    SELECT
        run, workflow, version, begun, done, greatest(planned, known, done) AS total,
        greatest(epoch_us($now) - epoch_us(begun), 0) AS elapsed_us,
        greatest(
            coalesce(epoch_us($now) - greatest(epoch_us(last_end), epoch_us(begun)), 0), 0)
            AS waited_us,
        coalesce(is_known, false) AS is_same
    FROM under_way
    LEFT JOIN (
        SELECT run, max(ended) AS last_end FROM ends SEMI JOIN under_way USING (run) GROUP BY run
    ) USING (run)
    LEFT JOIN versions USING (workflow, version)
), stages AS (
    SELECT
        past, end_us, row_number() OVER in_time - 1 AS stage,
        lead(end_us) OVER in_time AS next_us, sum(one) OVER (PARTITION BY past) AS size
    FROM (
        SELECT past, began AS end_us, 0 AS one FROM past
        UNION ALL
        SELECT past, coalesce(epoch_us(ended), began), 1
        FROM ends JOIN past ON ends.run = past.past
    )
    WINDOW in_time AS (PARTITION BY past ORDER BY one, end_us)
), sizes AS (
    SELECT past, size FROM stages WHERE stage = 0
), pairs AS (
    SELECT
        live.run, live.waited_us, past.past, past.finished, live.total = size AS is_as_large,
        least(
            CASE WHEN live.total = size THEN done
            ELSE coalesce(floor(done * size / nullif(live.total, 0)), 0) END,
            size)::BIGINT AS stage
    FROM live
    JOIN past ON past.workflow = live.workflow AND CASE
        WHEN is_same THEN past.version = live.version AND of_version <= $past_max
        ELSE of_any <= $past_max END
    JOIN sizes USING (past)
), points AS (
    SELECT
        run, greatest(finished - end_us - waited_us, 0) / 1e6 AS left_s,
        coalesce(next_us, finished) - end_us >= waited_us AS is_alike, is_as_large
    FROM pairs JOIN stages USING (past, stage)
), weighed AS (
    SELECT
        run, count(*) AS n, count(*) FILTER (is_alike) AS alike,
        count(*) FILTER (is_as_large) * 2 >= count(*) AS is_as_large,
        quantile_cont(left_s, [0.1, 0.5, 0.9]) AS of_all,
        quantile_cont(left_s, [0.1, 0.5, 0.9]) FILTER (is_alike) AS of_alike
    FROM points GROUP BY run
), told AS (
    SELECT
        live.*, coalesce(CASE WHEN alike >= $past_enough THEN alike ELSE n END, 0) AS runs,
        CASE WHEN (CASE WHEN alike >= $past_enough THEN of_alike ELSE of_all END)[3] > 0
        THEN CASE WHEN alike >= $past_enough THEN of_alike ELSE of_all END END AS left_s,
        alike >= $past_enough AS is_enough, is_as_large
    FROM live LEFT JOIN weighed USING (run)
)
SELECT
    run, workflow, version, $now AS as_of, begun AS started, elapsed_us / 1e6 AS elapsed_s,
    done, total, left_s[1] AS remaining_low_s, left_s[2] AS remaining_s,
    left_s[3] AS remaining_high_s,
    make_timestamptz(epoch_us($now) + round(left_s[2] * 1e6)::BIGINT) AS ends,
    CASE WHEN runs > 0 THEN concat(
        'completed runs ', CASE WHEN is_same THEN 'of this version' ELSE 'of any version' END,
        ': ', runs, ', when ',
        CASE WHEN is_as_large THEN 'as many activities' ELSE 'the same share of activities' END,
        ' had ended', CASE WHEN is_enough THEN ' and the next took as long' ELSE '' END,
        CASE WHEN left_s IS NULL THEN '; nearly all were over by now' ELSE '' END)
    ELSE 'no run of this workflow has completed' END AS basis,
    runs
FROM told
