-- Stage 1, the same for both versions: one clean row per event. The param `events` is the relation to clean: a window, or the change.
SELECT * EXCEPT (delivery)
FROM (
  SELECT *, row_number() OVER (PARTITION BY event_id ORDER BY arrived_at DESC) AS delivery  -- the last delivery counts
  FROM (
    SELECT
      to_date(event_at) AS day,
      event_id,
      event_at,
      arrived_at,
      account_id,
      CASE
        WHEN device RLIKE 'smarttv|webos|roku|playstation' THEN 'tv'
        WHEN device RLIKE 'iphone|pixel' THEN 'phone'
        WHEN device RLIKE 'ipad' THEN 'tablet'
        ELSE 'web'
      END AS device_class,
      regexp_extract(device, '^([a-z]+)', 1) AS device_make,
      regexp_extract(device, '([0-9]+[.][0-9]+)[^0-9]*$', 1) AS device_version,
      said.session.id AS session_id,
      said.session.app AS app_version,
      said.session.country AS country,
      said.session.network.type AS network,
      said.title.id AS title_id,
      said.title.kind AS title_kind,
      said.play.watched_s AS seconds_watched,
      said.play.completed AS completed,
      said.quality.bitrate_kbps AS bitrate_kbps,
      said.quality.rebuffers AS rebuffers,
      said.quality.startup_ms AS startup_ms,
      said.quality.bytes AS bytes_streamed,
      said.cdn.pop AS pop
    FROM (
      SELECT
        event_id,
        event_at,
        arrived_at,
        account_id,
        lower(trim(device)) AS device,
        from_json(
          payload,
          'session STRUCT<id: STRING, app: STRING, country: STRING, network: STRUCT<type: STRING>>,
           title STRUCT<id: BIGINT, kind: STRING>,
           play STRUCT<watched_s: INT, completed: BOOLEAN>,
           quality STRUCT<bitrate_kbps: INT, rebuffers: INT, startup_ms: INT, bytes: BIGINT>,
           cdn STRUCT<pop: STRING>'
        ) AS said
      FROM ${events}
    )
  )
)
WHERE delivery = 1
