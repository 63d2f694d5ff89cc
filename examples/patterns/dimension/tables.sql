CREATE NAMESPACE IF NOT EXISTS db;
CREATE TABLE IF NOT EXISTS db.title_plays (id BIGINT, day DATE, title_id INT)
USING iceberg PARTITIONED BY (day);

CREATE TABLE IF NOT EXISTS db.titles (title_id INT, name STRING, genre STRING)
USING iceberg;

CREATE TABLE IF NOT EXISTS db.named_plays (id BIGINT, day DATE, title_id INT, name STRING, genre STRING)
USING iceberg PARTITIONED BY (day);
