CREATE TEMP VIEW raw AS
SELECT * FROM read_parquet(
    '$archive/date=*/*.parquet',
    filename = true, file_row_number = true, hive_partitioning = false);
