CREATE TEMP TABLE activity_stats AS
WITH ran AS (
    SELECT *, CASE WHEN state = 'succeeded' THEN duration_s END AS good_s
    FROM attempts
    WHERE state IN ('succeeded', 'failed', 'retrying', 'cancelled')
), counted AS (
    SELECT
        workflow, activity, version,
        count(DISTINCT run) AS runs,
        count(*) AS count,
        count(*) FILTER (state IN ('failed', 'retrying')) AS failed,
        count(*) FILTER (state = 'cancelled') AS cancelled,
        avg(good_s) AS mean_s, stddev_samp(good_s) AS stddev_s, min(good_s) AS min_s,
        quantile_cont(good_s, [0.1, 0.5, 0.9, 0.99]) AS quantiles,
        max(good_s) AS max_s,
        sum(duration_s) AS busy_s,
        coalesce(sum(duration_s) FILTER (state <> 'succeeded'), 0) AS wasted_s,
        avg(waited_s) AS mean_waited_s,
        avg(measured(use_CpuSeconds)) AS mean_cpu_s,
        avg(measured(use_MemoryPeak)) AS mean_memory_bytes,
        max(measured(use_MemoryPeak)) AS max_memory_bytes,
        avg(measured(use_IoReadBytes)) AS mean_read_bytes,
        avg(measured(use_IoWriteBytes)) AS mean_written_bytes,
        avg(input_bytes) AS mean_input_bytes,
        min(ended) AS first_ended, max(ended) AS last_ended
    FROM ran
    GROUP BY ALL
), placed AS (
    SELECT workflow, activity, version, bin_of(good_s, min_s, max_s) AS bin, count(*) AS times
    FROM ran JOIN counted USING (workflow, activity, version)
    WHERE good_s IS NOT NULL
    GROUP BY ALL
), bins AS (
    SELECT workflow, activity, version, map(list(bin), list(times)) AS times
    FROM placed
    GROUP BY ALL
)
SELECT
    counted.*,
    quantiles[1] AS p10_s, quantiles[2] AS p50_s, quantiles[3] AS p90_s, quantiles[4] AS p99_s,
    CASE WHEN bins.times IS NOT NULL THEN [
        {
            'low_s': CASE WHEN n = 0 THEN min_s ELSE edge(n, min_s, max_s) END,
            'high_s': CASE WHEN n = last_bin(min_s, max_s) THEN max_s
                ELSE edge(n + 1, min_s, max_s) END,
            'count': coalesce(bins.times[n], 0)
        } FOR n IN range(last_bin(min_s, max_s) + 1)] END AS histogram
FROM counted LEFT JOIN bins USING (workflow, activity, version)
