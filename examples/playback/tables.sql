-- The tables of the example. Raw events are shared; each version of the pipeline has its own tables.
CREATE NAMESPACE IF NOT EXISTS playback;
CREATE NAMESPACE IF NOT EXISTS lookback;
CREATE NAMESPACE IF NOT EXISTS incremental;

CREATE TABLE IF NOT EXISTS playback.playback_table (
  event_id BIGINT, arrived_at TIMESTAMP, event_at TIMESTAMP, account_id BIGINT, device STRING, payload STRING
) USING iceberg PARTITIONED BY (days(arrived_at))
TBLPROPERTIES ('format-version' = '3', 'write.distribution-mode' = 'none', 'write.spark.fanout.enabled' = 'true');

CREATE TABLE IF NOT EXISTS lookback.playback_daily_table (
  day DATE NOT NULL, event_id BIGINT NOT NULL, event_at TIMESTAMP, arrived_at TIMESTAMP, account_id BIGINT,
  device_class STRING, device_make STRING, device_version STRING,
  session_id STRING, app_version STRING, country STRING, network STRING, title_id BIGINT, title_kind STRING,
  seconds_watched INT, completed BOOLEAN, bitrate_kbps INT, rebuffers INT, startup_ms INT, bytes_streamed BIGINT,
  pop STRING
) USING iceberg PARTITIONED BY (day)
TBLPROPERTIES (
  'format-version' = '3',
  'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'
);

CREATE TABLE IF NOT EXISTS lookback.playback_daily_agg_table (
  day DATE, account_id BIGINT, plays BIGINT, completed_plays BIGINT, tv_plays BIGINT, seconds_watched BIGINT,
  rebuffers BIGINT, bytes_streamed BIGINT, first_play_at TIMESTAMP, last_play_at TIMESTAMP
) USING iceberg PARTITIONED BY (day)
TBLPROPERTIES (
  'format-version' = '3',
  'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'
);

CREATE TABLE IF NOT EXISTS incremental.playback_daily_table (
  day DATE NOT NULL, event_id BIGINT NOT NULL, event_at TIMESTAMP, arrived_at TIMESTAMP, account_id BIGINT,
  device_class STRING, device_make STRING, device_version STRING,
  session_id STRING, app_version STRING, country STRING, network STRING, title_id BIGINT, title_kind STRING,
  seconds_watched INT, completed BOOLEAN, bitrate_kbps INT, rebuffers INT, startup_ms INT, bytes_streamed BIGINT,
  pop STRING
) USING iceberg PARTITIONED BY (day)
TBLPROPERTIES (
  'format-version' = '3',
  'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'
);

CREATE TABLE IF NOT EXISTS incremental.playback_daily_agg_table (
  day DATE, account_id BIGINT, plays BIGINT, completed_plays BIGINT, tv_plays BIGINT, seconds_watched BIGINT,
  rebuffers BIGINT, bytes_streamed BIGINT, first_play_at TIMESTAMP, last_play_at TIMESTAMP
) USING iceberg PARTITIONED BY (day)
TBLPROPERTIES (
  'format-version' = '3',
  'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'
);

-- No two rows have the same day and event: declare them as identifier fields. A merge by these keys then needs no lookup
-- of the rows that it replaces.
ALTER TABLE lookback.playback_daily_table SET IDENTIFIER FIELDS day, event_id;
ALTER TABLE incremental.playback_daily_table SET IDENTIFIER FIELDS day, event_id;
