CREATE TEMP MACRO seconds_between(first, second) AS
    round((epoch_us(second) - epoch_us(first)) / 1e6, 6);

CREATE TEMP MACRO apart(s, e) AS
    {'apart': epoch_us(e) - epoch_us(s), 's': epoch_us(s), 'e': epoch_us(e)};

-- True if two times differ as if one of them were in another zone; never null.
CREATE TEMP MACRO is_zones_apart(seconds, slack_s) AS coalesce(
    round_even(abs(seconds) / $zone_step_s, 0) BETWEEN $zone_steps_min AND $zone_steps_max
    AND abs(abs(seconds) - round_even(abs(seconds) / $zone_step_s, 0) * $zone_step_s) <= slack_s,
    false);
CREATE TEMP MACRO is_zone_apart(seconds) AS is_zones_apart(seconds, $zone_slack_s);

-- True if an event was dated by a wrong clock, rather than late.
CREATE TEMP MACRO is_clock_off(delay_s) AS
    is_zones_apart(delay_s, $delay_s_max) AND delay_s > 0 OR delay_s >= $clock_off_s_min;

-- The texts of all lists, sorted; of too many the shortest, as many as fit.
CREATE TEMP MACRO sized(texts) AS
    list_sort([{'n': strlen(t), 't': t} FOR t IN texts])[1:$union_items_max];
CREATE TEMP MACRO fitting(sizes) AS
    list_sort([
        x.t FOR x, i IN sizes
        IF list_sum([y.n FOR y IN sizes[1:i]]) <= $union_bytes_max
    ]);
CREATE TEMP MACRO kept(texts) AS CASE
    WHEN len(texts) = 0 THEN texts
    WHEN len(texts) <= $union_items_max
        AND list_sum([strlen(t) FOR t IN texts]) <= $union_bytes_max THEN texts
    ELSE fitting(sized(texts)) END;
CREATE TEMP MACRO united(lists) AS kept(list_sort(list_distinct(flatten(lists))));

-- Which failures are the same: numbers, addresses, ids and paths differ from one to the next.
CREATE TEMP MACRO lines_of(words) AS
    list_filter(
        regexp_split_to_array(words, '\r\n|[\n\r\x0b\x0c\x1c-\x1e\x{85}\x{2028}\x{2029}]'),
        lambda line: trim(line, e' \t\r\n\x0b\x0c') <> '');
CREATE TEMP MACRO plain_words(line) AS
    lower(trim(
        regexp_replace(
            line[1:$fault_chars_max], '0x[0-9a-f]+|[0-9a-f]{8,}|\d+|/[^\s''":,]+', '#', 'gi'),
        e' \t\r\n\x0b\x0c'));

-- A histogram has 20 bins, equal by their logarithm; one if all values are the same.
CREATE TEMP MACRO at_least(s) AS greatest(s, 1e-6);
CREATE TEMP MACRO last_bin(low, high) AS
    CASE WHEN at_least(low) < at_least(high) THEN 19 ELSE 0 END;
CREATE TEMP MACRO edge(n, low, high) AS CASE
    WHEN n = 0 THEN low WHEN n = 20 THEN high
    ELSE at_least(low) * pow(at_least(high) / at_least(low), n / 20) END;
CREATE TEMP MACRO near_bin(s, low, high) AS
    greatest(0, least(19, floor(
        ln(at_least(s) / at_least(low)) / ln(at_least(high) / at_least(low)) * 20)))::INTEGER;
CREATE TEMP MACRO bin_of(s, low, high) AS CASE
    WHEN at_least(low) >= at_least(high) THEN 0
    WHEN near_bin(s, low, high) > 0 AND s < edge(near_bin(s, low, high), low, high)
        THEN near_bin(s, low, high) - 1
    WHEN near_bin(s, low, high) < 19 AND s >= edge(near_bin(s, low, high) + 1, low, high)
        THEN near_bin(s, low, high) + 1
    ELSE near_bin(s, low, high) END;

-- A finite number may still be so large that its square is none: it is no measurement then.
CREATE TEMP MACRO measured(number) AS CASE WHEN abs(number) <= 1e100 THEN number END;

-- An attribute comes plain, or as an object with its unit.
CREATE TEMP MACRO told_number(attributes, name) AS coalesce(
    TRY_CAST(attributes ->> ('$$.' || name || '.value') AS DOUBLE),
    TRY_CAST(attributes ->> ('$$.' || name) AS DOUBLE));
