CREATE TEMP TABLE deliveries AS
WITH samples AS (
    SELECT * FROM read_parquet('$archive/_deliveries/*/*.parquet', hive_partitioning = false)
), grown AS (
    SELECT *,
        $grown,
        lag("at") OVER in_time IS NULL AS is_first,
        epoch_us("at") > (min(epoch_us("at")) OVER whole + max(epoch_us("at")) OVER whole) / 2
            AS is_later
    FROM samples
    WINDOW
        in_time AS (PARTITION BY subscription ORDER BY "at"),
        whole AS (PARTITION BY subscription)
), counted AS (
    SELECT
        subscription, min("at") AS first_seen, max("at") AS last_seen, count(*) AS samples,
        $added,
        sum(more_delivered) FILTER (NOT is_first) AS grown_delivered,
        max(behind) AS max_behind, avg(behind) AS mean_behind,
        avg(behind) FILTER (is_later) AS later_behind,
        avg(behind) FILTER (NOT is_later) AS earlier_behind,
        max({'at': "at", 'sink': sink, 'protocol': protocol, 'state': state,
            'sink_state': sink_state, 'behind': behind}) AS last,
        arg_max(last_error, "at") AS last_error
    FROM grown
    GROUP BY subscription
), letters AS (
    SELECT subscription, reason, count(DISTINCT id) AS times, min("at") AS first_seen,
        max("at") AS last_seen, arg_max(sink, "at") AS sink
    FROM read_parquet('$archive/_deadletters/*/*.parquet', hive_partitioning = false)
    GROUP BY subscription, reason
), given_up AS (
    SELECT subscription,
        list({'reason': reason, 'count': times} ORDER BY times DESC, reason) AS reasons,
        arg_max(sink, last_seen) AS sink, min(first_seen) AS first_seen,
        max(last_seen) AS last_seen
    FROM letters
    GROUP BY subscription
)
SELECT
    subscription, coalesce(last.sink, g.sink) AS sink, last.protocol, last.state, last.sink_state,
    coalesce(c.first_seen, g.first_seen) AS first_seen,
    coalesce(c.last_seen, g.last_seen) AS last_seen,
    coalesce(samples, 0) AS samples, coalesce(delivered, 0) AS delivered,
    coalesce(failed_attempts, 0) AS failed_attempts, coalesce(dead, 0) AS dead,
    coalesce(dropped, 0) AS dropped, last.behind, max_behind, mean_behind,
    grown_delivered / nullif((epoch_us(c.last_seen) - epoch_us(c.first_seen)) / 3.6e9, 0)
        AS per_hour,
    failed_attempts / nullif(delivered + failed_attempts, 0) AS failing_share,
    coalesce(
        last.behind >= 100 AND (earlier_behind IS NULL OR later_behind >= earlier_behind), false)
        AS slow,
    last_error, coalesce(reasons, []) AS reasons
FROM counted AS c FULL JOIN given_up AS g USING (subscription)
