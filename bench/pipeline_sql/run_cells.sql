CREATE TEMP TABLE run_cells AS
WITH cells AS (
    SELECT run, $order_at AS ord, plan IS NOT NULL AS has_plan, $run_cells FROM messages
)
SELECT run, bool_or(has_plan) AS has_plan, $run_merged
FROM cells
GROUP BY run
