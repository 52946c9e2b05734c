CREATE TEMP TABLE activity_usage AS
SELECT
    workflow, activity, date_trunc('hour', ended) AS hour,
    count(*) AS attempts,
    count(*) FILTER (state IN ('failed', 'retrying')) AS failed,
    sum(duration_s) AS busy_s, sum(use_CpuSeconds) AS cpu_s,
    avg(use_MemoryPeak) AS mean_memory_bytes, max(use_MemoryPeak) AS max_memory_bytes,
    sum(use_IoReadBytes) AS read_bytes, sum(use_IoWriteBytes) AS written_bytes
FROM attempts
WHERE state IN ('succeeded', 'failed', 'retrying', 'cancelled') AND ended IS NOT NULL
GROUP BY ALL
