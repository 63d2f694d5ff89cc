CREATE NAMESPACE IF NOT EXISTS db;
CREATE TABLE IF NOT EXISTS db.plays (id BIGINT, account STRING, day DATE, device STRING, seconds INT)
USING iceberg PARTITIONED BY (day);

CREATE TABLE IF NOT EXISTS db.account_days
    (account STRING, day DATE, plays BIGINT, seconds BIGINT, longest INT, devices BIGINT)
USING iceberg PARTITIONED BY (day);
