SELECT device, day, count(*) AS plays, coalesce(sum(seconds), 0) AS seconds
FROM (
    SELECT id, play.*
    FROM (
        SELECT id, max_by(struct(account, day, lower(trim(device)) AS device, seconds), seconds) AS play
        FROM db.plays
        GROUP BY id
    )
)
GROUP BY device, day
