SELECT p.id, p.day, p.title_id, n.name, n.genre
FROM db.title_plays p
LEFT JOIN db.titles n ON n.title_id = p.title_id
