CREATE TEMP TABLE discoveries AS
SELECT
    model, request, count(*) AS count,
    count(*) FILTER (found = 0) AS empty,
    avg(found) AS mean_found, avg(seconds) AS mean_s,
    quantile_cont(seconds, 0.5) AS p50_s, quantile_cont(seconds, 0.9) AS p90_s,
    max(seconds) AS max_s, avg(brokers) AS mean_brokers, avg(messages) AS mean_messages,
    coalesce(sum(shared), 0) AS shared, min("at") AS first_seen, max("at") AS last_seen
FROM read_parquet('$archive/_discoveries/*/*.parquet', hive_partitioning = false)
GROUP BY model, request
