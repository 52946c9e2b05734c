$target_moments AS (
    SELECT
        kind, count(y) AS n, avg(y) AS mean, regr_count(y, x) AS pairs,
        regr_avgx(y, x) AS center, regr_avgy(y, x) AS height, regr_sxx(y, x) AS sxx,
        regr_sxy(y, x) AS sxy, regr_syy(y, x) AS syy,
        min(x) FILTER (y IS NOT NULL) AS input_min, max(x) FILTER (y IS NOT NULL) AS input_max
    FROM (SELECT kind, x, $target AS y FROM good)
    GROUP BY kind
), $target_lines AS (
    SELECT *,
        CASE WHEN is_line THEN pairs ELSE n END AS count,
        CASE WHEN is_line THEN sxy / sxx END AS slope,
        CASE WHEN is_line THEN height - sxy / sxx * center ELSE mean END AS intercept,
        CASE WHEN is_line AND syy > 0 THEN least(sxy * (sxy / sxx / syy), 1.0) END AS r2
    FROM (
        SELECT *,
            coalesce(pairs >= 3 AND input_min < input_max AND sxx > 0, false) AS is_line
        FROM $target_moments
    )
    WHERE n > 0
), $target_left_out AS (
    SELECT kind, $target AS y,
        ($target - intercept - coalesce(slope * x, 0)) / free AS miss
    FROM (
        SELECT good.*, intercept, slope,
            1 - (1 / count + CASE WHEN is_line
                THEN (x - center) * ((x - center) / sxx) ELSE 0 END) AS free
        FROM good JOIN $target_lines USING (kind)
        WHERE $target IS NOT NULL AND (NOT is_line OR x IS NOT NULL)
    )
    WHERE free > 1e-9
), $target_model AS (
    SELECT
        kind, '$target' AS target, count, intercept, slope, r2, rmse, median_error,
        input_min, input_max, mean
    FROM $target_lines LEFT JOIN (
        SELECT
            kind, sqrt(avg(miss * miss)) AS rmse,
            quantile_cont(abs(miss) / y, 0.5) FILTER (y > 0) AS median_error
        FROM $target_left_out
        GROUP BY kind
    ) USING (kind)
)
