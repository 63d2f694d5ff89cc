BEGIN TRANSACTION;
CREATE TABLE attempt (
	uuid TEXT NOT NULL, 
	run_uuid TEXT NOT NULL, 
	root_uuid TEXT NOT NULL, 
	step_id TEXT NOT NULL, 
	step_instance_id INTEGER NOT NULL, 
	attempt_id INTEGER NOT NULL, 
	type TEXT NOT NULL, 
	status TEXT NOT NULL, 
	is_leaf BOOLEAN NOT NULL, 
	is_superseded BOOLEAN NOT NULL, 
	params TEXT NOT NULL, 
	artifacts TEXT NOT NULL, 
	edges TEXT NOT NULL, 
	retries TEXT NOT NULL, 
	times TEXT NOT NULL, 
	timeline TEXT NOT NULL, 
	dependencies TEXT NOT NULL, 
	tags TEXT NOT NULL, 
	action TEXT, 
	due_at BIGINT, 
	timeout_at BIGINT, 
	worker TEXT, 
	ended_at BIGINT, 
	PRIMARY KEY (uuid), 
	CONSTRAINT attempt_number UNIQUE (run_uuid, step_id, attempt_id)
);
INSERT INTO "attempt" VALUES('00000000-0000-4000-8000-000000000002','00000000-0000-4000-8000-000000000001','00000000-0000-4000-8000-000000000001','merge',1,1,'Shell','RUNNING',1,0,'{}','{}','{}','{}','{"create":4}','[]','[]','["heavy"]',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE calve_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT calve_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "calve_version" VALUES('0003');
CREATE TABLE capture (
	id TEXT NOT NULL, 
	consumer TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	"key" TEXT, 
	status TEXT NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	closed_at VARCHAR(32), 
	collected_at VARCHAR(32), 
	moves JSON NOT NULL, 
	artifacts JSON NOT NULL, 
	document JSON NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT capture_number UNIQUE (consumer, number)
);
CREATE TABLE checkpoint (
	consumer TEXT NOT NULL, 
	catalog TEXT NOT NULL, 
	table_name TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	checkpoint JSON NOT NULL, 
	moved_at VARCHAR(32) NOT NULL, 
	moved_by TEXT NOT NULL, 
	PRIMARY KEY (consumer, catalog, table_name)
);
CREATE TABLE checkpoint_log (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	at VARCHAR(32) NOT NULL, 
	consumer TEXT NOT NULL, 
	catalog TEXT NOT NULL, 
	table_name TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	reason TEXT NOT NULL, 
	"before" JSON, 
	"after" JSON, 
	CONSTRAINT checkpoint_log_place UNIQUE (consumer, catalog, table_name, version)
);
CREATE TABLE delivery_branch (
	branch TEXT NOT NULL, 
	catalog TEXT NOT NULL, 
	table_name TEXT NOT NULL, 
	stream TEXT NOT NULL, 
	capture_id TEXT, 
	run TEXT NOT NULL, 
	part TEXT NOT NULL, 
	attempt TEXT NOT NULL, 
	status TEXT NOT NULL, 
	staged_at VARCHAR(32) NOT NULL, 
	changed_at VARCHAR(32) NOT NULL, 
	table_uuid TEXT, 
	base_snapshot_id BIGINT, 
	branch_snapshot_id BIGINT, 
	PRIMARY KEY (branch, catalog, table_name)
);
INSERT INTO "delivery_branch" VALUES('calve_a1_x','lake','db.daily','daily/merge','c1','daily/1/1/merge','2','a1','held','2026-03-01T00:00:00.000000+00:00','2026-03-01T00:00:00.000000+00:00','u1',7,7);
CREATE TABLE delivery_target (
	stream TEXT NOT NULL, 
	catalog TEXT NOT NULL, 
	table_name TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	delivered_at VARCHAR(32) NOT NULL, 
	PRIMARY KEY (stream, catalog, table_name)
);
INSERT INTO "delivery_target" VALUES('daily/merge','lake','db.daily','u1','2026-03-01T00:00:00.000000+00:00');
CREATE TABLE event (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	xid BIGINT DEFAULT 0, 
	kind TEXT NOT NULL, 
	run_uuid TEXT NOT NULL, 
	root_uuid TEXT NOT NULL, 
	workflow_id TEXT NOT NULL, 
	instance_id BIGINT NOT NULL, 
	run_id INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	step_id TEXT, 
	attempt_id INTEGER, 
	"before" TEXT, 
	"after" TEXT, 
	detail TEXT NOT NULL
);
INSERT INTO "event" VALUES(1,0,'WORKFLOW_INSTANCE_STATUS_CHANGE','00000000-0000-4000-8000-000000000001','00000000-0000-4000-8000-000000000001','daily',1,1,2,NULL,NULL,NULL,'CREATED','{}');
INSERT INTO "event" VALUES(2,0,'STEP_INSTANCE_STATUS_CHANGE','00000000-0000-4000-8000-000000000001','00000000-0000-4000-8000-000000000001','daily',1,1,4,'merge',1,'CREATED','RUNNING','{}');
CREATE TABLE log_chunk (
	attempt_uuid TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	PRIMARY KEY (attempt_uuid, number)
);
INSERT INTO "log_chunk" VALUES('00000000-0000-4000-8000-000000000002',0,'hello
');
CREATE TABLE permit_claim (
	seq INTEGER NOT NULL, 
	permit TEXT NOT NULL, 
	attempt_uuid TEXT NOT NULL, 
	run_uuid TEXT NOT NULL, 
	max_held INTEGER, 
	is_held BOOLEAN NOT NULL, 
	priority INTEGER NOT NULL, 
	PRIMARY KEY (seq), 
	CONSTRAINT permit_claim_place UNIQUE (attempt_uuid, permit)
);
INSERT INTO "permit_claim" VALUES(1,'tag:heavy','00000000-0000-4000-8000-000000000002','00000000-0000-4000-8000-000000000001',NULL,1,0);
CREATE TABLE run (
	uuid TEXT NOT NULL, 
	workflow_id TEXT NOT NULL, 
	instance_id BIGINT NOT NULL, 
	run_id INTEGER NOT NULL, 
	version_id INTEGER NOT NULL, 
	owner_workflow TEXT NOT NULL, 
	root_uuid TEXT NOT NULL, 
	status TEXT NOT NULL, 
	run_status TEXT NOT NULL, 
	initiator TEXT NOT NULL, 
	policy TEXT NOT NULL, 
	parent_run TEXT, 
	parent_step TEXT, 
	parent_attempt TEXT, 
	inline_step TEXT, 
	depth INTEGER NOT NULL, 
	priority INTEGER NOT NULL, 
	properties TEXT NOT NULL, 
	run_params TEXT NOT NULL, 
	params TEXT NOT NULL, 
	restart TEXT NOT NULL, 
	carried TEXT NOT NULL, 
	request_id TEXT, 
	tags TEXT NOT NULL, 
	is_queued BOOLEAN NOT NULL, 
	is_latest BOOLEAN NOT NULL, 
	is_blocking BOOLEAN NOT NULL, 
	action TEXT, 
	message TEXT NOT NULL, 
	timeline TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	started_at BIGINT, 
	ended_at BIGINT, 
	timeout_at BIGINT, 
	seq BIGINT NOT NULL, 
	PRIMARY KEY (uuid), 
	CONSTRAINT run_number UNIQUE (workflow_id, instance_id, run_id)
);
INSERT INTO "run" VALUES('00000000-0000-4000-8000-000000000001','daily',1,1,1,'daily','00000000-0000-4000-8000-000000000001','IN_PROGRESS','CREATED','{"type":"MANUAL","user":null,"timezone":null,"trigger":{}}','START_FRESH_NEW_RUN',NULL,NULL,NULL,NULL,0,0,'{}','{}','{"day":{"type":"LONG","value":20260301}}','{}','{}','q','[]',0,1,0,'{"action":"STOP","by":"ann","at":6,"reason":"enough","is_upstream":false,"params":{}}','','[]',2,NULL,NULL,NULL,1);
CREATE TABLE step_breakpoint (
	workflow_id TEXT NOT NULL, 
	step_id TEXT NOT NULL, 
	version_id INTEGER NOT NULL, 
	instance_id BIGINT NOT NULL, 
	run_id INTEGER NOT NULL, 
	attempt_id INTEGER NOT NULL, 
	created_by TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	PRIMARY KEY (workflow_id, step_id, version_id, instance_id, run_id, attempt_id)
);
INSERT INTO "step_breakpoint" VALUES('daily','merge',0,0,0,0,'ann',5);
CREATE TABLE tag_permit (
	tag TEXT NOT NULL, 
	max_allowed INTEGER NOT NULL, 
	modified_at BIGINT NOT NULL, 
	PRIMARY KEY (tag)
);
INSERT INTO "tag_permit" VALUES('heavy',2,4);
CREATE TABLE task (
	seq INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	run_uuid TEXT NOT NULL, 
	attempt_uuid TEXT, 
	due_at BIGINT NOT NULL, 
	priority INTEGER NOT NULL, 
	owner TEXT, 
	generation INTEGER NOT NULL, 
	wakes INTEGER NOT NULL, 
	tries INTEGER NOT NULL, 
	PRIMARY KEY (seq), 
	CONSTRAINT task_key UNIQUE ("key")
);
INSERT INTO "task" VALUES(1,'00000000-0000-4000-8000-000000000001','run','00000000-0000-4000-8000-000000000001',NULL,0,0,NULL,0,0,0);
INSERT INTO "task" VALUES(2,'00000000-0000-4000-8000-000000000002','step','00000000-0000-4000-8000-000000000001','00000000-0000-4000-8000-000000000002',0,0,NULL,0,0,0);
CREATE TABLE version (
	workflow_id TEXT NOT NULL, 
	version_id INTEGER NOT NULL, 
	definition TEXT NOT NULL, 
	author TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	PRIMARY KEY (workflow_id, version_id)
);
INSERT INTO "version" VALUES('daily',1,'{"workflow":{"id":"daily"}}','ann',1);
CREATE TABLE worker (
	uuid TEXT NOT NULL, 
	host TEXT NOT NULL, 
	pid INTEGER NOT NULL, 
	started_at BIGINT NOT NULL, 
	heartbeat_at BIGINT NOT NULL, 
	slots INTEGER NOT NULL, 
	is_draining BOOLEAN NOT NULL, 
	is_dead BOOLEAN NOT NULL, 
	PRIMARY KEY (uuid)
);
INSERT INTO "worker" VALUES('00000000-0000-4000-8000-000000000009','host',17,3,1794756600434,4,0,0);
CREATE TABLE workflow (
	workflow_id TEXT NOT NULL, 
	active_version INTEGER, 
	latest_version INTEGER NOT NULL, 
	properties TEXT NOT NULL, 
	strategy TEXT, 
	last_instance BIGINT NOT NULL, 
	created_at BIGINT NOT NULL, 
	modified_at BIGINT NOT NULL, 
	deleted_at BIGINT, 
	PRIMARY KEY (workflow_id)
);
INSERT INTO "workflow" VALUES('daily',1,1,'{"owner":"ann","run_strategy":{"rule":"PARALLEL"}}','{"rule": "PARALLEL"}',1,1,1,NULL);
CREATE UNIQUE INDEX capture_open ON capture (consumer) WHERE status = 'open';
CREATE UNIQUE INDEX capture_key ON capture (consumer, "key") WHERE key IS NOT NULL AND status IN ('open', 'committed');
CREATE INDEX capture_uncollected ON capture (created_at) WHERE collected_at IS NULL;
CREATE INDEX run_blocking ON run (workflow_id) WHERE is_blocking;
CREATE INDEX run_child ON run (parent_attempt, instance_id) WHERE parent_attempt IS NOT NULL;
CREATE INDEX run_live ON run (workflow_id, is_queued, instance_id, run_id) WHERE inline_step IS NULL AND status IN ('CREATED', 'IN_PROGRESS', 'PAUSED');
CREATE INDEX run_newest ON run (created_at, uuid) WHERE is_latest AND inline_step IS NULL;
CREATE INDEX run_newest_of ON run (workflow_id, created_at, uuid) WHERE is_latest AND inline_step IS NULL;
CREATE INDEX run_open_child ON run (parent_attempt, status, is_latest) WHERE parent_attempt IS NOT NULL AND is_latest AND status <> 'SUCCEEDED';
CREATE UNIQUE INDEX run_request ON run (workflow_id, request_id) WHERE request_id IS NOT NULL;
CREATE INDEX run_root ON run (root_uuid);
CREATE INDEX run_timeout ON run (timeout_at) WHERE timeout_at IS NOT NULL AND status IN ('CREATED', 'IN_PROGRESS', 'PAUSED');
CREATE INDEX attempt_paused ON attempt (step_id) WHERE status = 'PAUSED';
CREATE INDEX attempt_rollup ON attempt (root_uuid, status, is_leaf, is_superseded) WHERE is_leaf AND NOT is_superseded;
CREATE INDEX attempt_timeout ON attempt (timeout_at) WHERE timeout_at IS NOT NULL AND status IN ('NOT_CREATED', 'CREATED', 'INITIALIZED', 'PAUSED', 'WAITING_FOR_SIGNALS', 'EVALUATING_PARAMS', 'WAITING_FOR_PERMITS', 'STARTING', 'RUNNING', 'FINISHING');
CREATE INDEX task_due ON task (kind, due_at) WHERE owner IS NULL;
CREATE INDEX task_free ON task (kind, priority, seq, due_at) WHERE owner IS NULL;
CREATE INDEX task_owner ON task (owner) WHERE owner IS NOT NULL;
CREATE INDEX permit_claim_line ON permit_claim (permit, is_held, priority, seq);
CREATE INDEX event_root ON event (root_uuid, seq);
CREATE INDEX event_run ON event (run_uuid, seq);
CREATE INDEX delivery_branch_capture ON delivery_branch (capture_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('event',2);
COMMIT;
