-- A changed row is in both relations: with its old and its new image. Only keys that are not in capture.relation are deleted.
MERGE INTO ${TARGET_TABLE} t
USING (
    SELECT id, account, day, lower(trim(device)) AS device, seconds, false AS is_deleted
    FROM ${capture.relation} AS came
    UNION ALL
    SELECT id, account, day, device, seconds, true AS is_deleted
    FROM ${capture.deletes_relation} AS gone
    WHERE NOT EXISTS (SELECT 1 FROM ${capture.relation} AS came WHERE came.id = gone.id)
) s
ON t.id = s.id
WHEN MATCHED AND s.is_deleted THEN DELETE
WHEN MATCHED THEN UPDATE SET account = s.account, day = s.day, device = s.device, seconds = s.seconds
WHEN NOT MATCHED AND NOT s.is_deleted THEN
    INSERT (id, account, day, device, seconds) VALUES (s.id, s.account, s.day, s.device, s.seconds)
