-- Lists of texts, united: few messages have some.
CREATE TEMP TABLE attempt_lists AS
WITH told AS (
    SELECT
        run, activity AS id, attempt, facts.InputFile AS inputs, facts.OutputFile AS outputs,
        facts.ParentActivity AS parents
    FROM messages
    WHERE activity IS NOT NULL AND (
        facts.InputFile IS NOT NULL OR facts.OutputFile IS NOT NULL
        OR facts.ParentActivity IS NOT NULL
    )
    UNION ALL BY NAME
    SELECT run, task.id AS id, 1 AS attempt, task.parents AS parents
    FROM (SELECT run, unnest(plan) AS task FROM messages WHERE plan IS NOT NULL)
    WHERE task.id IS NOT NULL AND task.parents IS NOT NULL
)
SELECT
    run, id, attempt,
    united(list(inputs) FILTER (inputs IS NOT NULL)) AS inputs,
    united(list(outputs) FILTER (outputs IS NOT NULL)) AS outputs,
    united(list(parents) FILTER (parents IS NOT NULL)) AS parents
FROM told
GROUP BY run, id, attempt
