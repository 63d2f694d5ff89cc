-- Stage 2, the same for both versions. The param `plays` has one more column than playback_daily_table: sign, which is 1
-- for a new row and -1 for a removed one. A correction never moves an event in time, so the first and the last
-- play of a day need only the new rows. A sum of only nulls is 0, so that it can be added.
SELECT
  day,
  account_id,
  sum(sign) AS plays,
  coalesce(sum(sign * int(completed)), 0) AS completed_plays,
  coalesce(sum(sign * int(device_class = 'tv')), 0) AS tv_plays,
  coalesce(sum(sign * seconds_watched), 0) AS seconds_watched,
  coalesce(sum(sign * rebuffers), 0) AS rebuffers,
  coalesce(sum(sign * bytes_streamed), 0) AS bytes_streamed,
  min(CASE WHEN sign > 0 THEN event_at END) AS first_play_at,
  max(CASE WHEN sign > 0 THEN event_at END) AS last_play_at
FROM ${plays}
GROUP BY day, account_id
