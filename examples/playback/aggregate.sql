-- Stage 2, the same for both versions. The param `plays` has a column more than playback_daily_table: sign, which is 1
-- for a row that came and -1 for one that left. A correction never moves an event in time, so the first and the last
-- play of a day need only the rows that came.
SELECT
  day,
  account_id,
  sum(sign) AS plays,
  sum(sign * int(completed)) AS completed_plays,
  sum(sign * int(device_class = 'tv')) AS tv_plays,
  sum(sign * seconds_watched) AS seconds_watched,
  sum(sign * rebuffers) AS rebuffers,
  sum(sign * bytes_streamed) AS bytes_streamed,
  min(CASE WHEN sign > 0 THEN event_at END) AS first_play_at,
  max(CASE WHEN sign > 0 THEN event_at END) AS last_play_at
FROM ${plays}
GROUP BY day, account_id
