SELECT device, day, count(*) AS plays, sum(seconds) AS seconds
FROM (
    SELECT id, play.*
    FROM (
        SELECT id, max_by(struct(account, day, lower(trim(device)) AS device, seconds), seconds) AS play
        FROM db.plays
        GROUP BY id
    )
)
GROUP BY device, day
