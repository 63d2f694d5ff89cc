CREATE NAMESPACE IF NOT EXISTS db;
CREATE TABLE IF NOT EXISTS db.plays (id BIGINT, account STRING, day DATE, device STRING, seconds INT)
USING iceberg PARTITIONED BY (day);

CREATE TABLE IF NOT EXISTS db.pauses (id BIGINT, account STRING, day DATE, seconds INT)
USING iceberg PARTITIONED BY (day);

CREATE TABLE IF NOT EXISTS db.account_days (account STRING, day DATE, played BIGINT, paused BIGINT)
USING iceberg PARTITIONED BY (day);

CREATE TABLE IF NOT EXISTS db.account_totals (account STRING, day DATE, total BIGINT)
USING iceberg PARTITIONED BY (day);
