SELECT lower(trim(device)) AS device, count(*) AS plays
FROM db.plays
GROUP BY lower(trim(device))
