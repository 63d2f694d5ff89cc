CREATE NAMESPACE IF NOT EXISTS db;
CREATE TABLE IF NOT EXISTS db.plays (id BIGINT, account STRING, day DATE, device STRING, seconds INT)
USING iceberg PARTITIONED BY (day);

CREATE TABLE IF NOT EXISTS db.clean_plays (id BIGINT, account STRING, day DATE, device STRING, seconds INT)
USING iceberg PARTITIONED BY (day);

CREATE TABLE IF NOT EXISTS db.device_days (device STRING, day DATE, plays BIGINT, seconds BIGINT)
USING iceberg PARTITIONED BY (day);
