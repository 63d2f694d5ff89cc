SELECT id, account, day, lower(trim(device)) AS device, seconds
FROM db.plays
