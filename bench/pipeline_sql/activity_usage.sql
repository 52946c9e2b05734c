CREATE TEMP TABLE activity_usage AS
SELECT
    workflow, activity, date_trunc('hour', ended) AS hour,
    count(*) AS attempts,
    count(*) FILTER (state IN ('failed', 'retrying')) AS failed,
    coalesce(sum(duration_s), 0) AS busy_s,
    sum(measured(use_CpuSeconds)) AS cpu_s,
    avg(measured(use_MemoryPeak)) AS mean_memory_bytes,
    max(measured(use_MemoryPeak)) AS max_memory_bytes,
    sum(measured(use_IoReadBytes)) AS read_bytes,
    sum(measured(use_IoWriteBytes)) AS written_bytes
FROM attempts
WHERE state IN ('succeeded', 'failed', 'retrying', 'cancelled') AND ended IS NOT NULL
GROUP BY ALL
