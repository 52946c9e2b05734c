-- Each failure, with the last $before_max events of its run before it.
CREATE TEMP TABLE failures AS
WITH failed AS (
    SELECT *, settled_seq AS seq,
        CASE WHEN fault IS NULL THEN 1 ELSE count(*) OVER same END AS seen,
        CASE WHEN fault IS NULL THEN 0
            ELSE row_number() OVER (same ORDER BY settled_seq, run, id, attempt) - 1
            END AS seen_before,
        CASE WHEN fault IS NULL THEN ended ELSE min(ended) OVER same END AS first_seen
    FROM attempts
    WHERE state IN ('failed', 'retrying')
    WINDOW same AS (PARTITION BY fault)
), numbered AS MATERIALIZED (
    SELECT
        run, seq, "at", type, activity,
        row_number() OVER (PARTITION BY run ORDER BY seq) AS number
    FROM events SEMI JOIN failed USING (run)
), places AS (
    SELECT failed.run, failed.id, failed.attempt, before.number AS last_number
    FROM failed ASOF JOIN numbered AS before
        ON failed.run = before.run AND failed.seq > before.seq
), context AS (
    SELECT
        places.run, places.id, places.attempt,
        list({'seq': n.seq, 'at': n."at", 'type': n.type, 'activity': n.activity} ORDER BY n.seq)
            AS before
    FROM places JOIN (SELECT range AS back FROM range($before_max)) ON true
    JOIN numbered AS n ON n.run = places.run AND n.number = places.last_number - back
    GROUP BY ALL
)
SELECT failed.*, coalesce(context.before, []) AS before
FROM failed LEFT JOIN context USING (run, id, attempt)
