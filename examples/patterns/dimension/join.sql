-- The plays that changed, and all plays of titles that changed. Both sides are read as they were captured.
MERGE INTO ${TARGET_TABLE} t
USING (
    SELECT k.id, p.id IS NULL AS is_deleted, p.day, p.title_id, n.name, n.genre
    FROM (
        SELECT id FROM ${capture.plays.relation} AS came
        UNION
        SELECT id FROM ${capture.plays.deletes_relation} AS gone
        UNION
        SELECT of_title.id
        FROM ${PLAYS_TABLE} VERSION AS OF ${capture.plays.to_snapshot_id} AS of_title
        WHERE of_title.title_id IN (
            SELECT title_id FROM ${capture.titles.relation} AS came
            UNION
            SELECT title_id FROM ${capture.titles.deletes_relation} AS gone
        )
    ) k
    LEFT JOIN ${PLAYS_TABLE} VERSION AS OF ${capture.plays.to_snapshot_id} AS p ON p.id = k.id
    LEFT JOIN ${TITLES_TABLE} VERSION AS OF ${capture.titles.to_snapshot_id} AS n ON n.title_id = p.title_id
) s
ON t.id = s.id
WHEN MATCHED AND s.is_deleted THEN DELETE
WHEN MATCHED THEN UPDATE SET day = s.day, title_id = s.title_id, name = s.name, genre = s.genre
WHEN NOT MATCHED AND NOT s.is_deleted THEN
    INSERT (id, day, title_id, name, genre) VALUES (s.id, s.day, s.title_id, s.name, s.genre)
