-- The schema 0009 in SQLite, the last one before the first release.
CREATE TABLE access_session (
	digest TEXT NOT NULL,
	user TEXT NOT NULL,
	epoch BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	PRIMARY KEY (digest)
);
CREATE TABLE access_token (
	token_id TEXT NOT NULL,
	name TEXT NOT NULL,
	digest TEXT NOT NULL,
	grants TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	owner TEXT,
	expires_at BIGINT,
	revoked_at BIGINT,
	used_at BIGINT,
	is_bootstrap BOOLEAN NOT NULL,
	PRIMARY KEY (token_id)
);
CREATE TABLE access_user (
	name TEXT NOT NULL,
	shown TEXT NOT NULL,
	password_hash TEXT,
	grants TEXT NOT NULL,
	is_disabled BOOLEAN NOT NULL,
	epoch BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (name)
);
CREATE TABLE alert_message (
	id TEXT NOT NULL,
	channel TEXT NOT NULL,
	recipients TEXT NOT NULL,
	alert TEXT NOT NULL,
	status TEXT NOT NULL,
	tries INTEGER NOT NULL,
	error TEXT NOT NULL,
	made_at BIGINT NOT NULL,
	due_at BIGINT NOT NULL,
	sent_at BIGINT,
	PRIMARY KEY (id)
);
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
CREATE TABLE audit (
	seq BIGINT NOT NULL,
	at BIGINT NOT NULL,
	who TEXT NOT NULL,
	action TEXT NOT NULL,
	target TEXT NOT NULL,
	source TEXT NOT NULL,
	result TEXT NOT NULL,
	detail TEXT NOT NULL,
	previous TEXT NOT NULL,
	digest TEXT NOT NULL,
	PRIMARY KEY (seq)
);
CREATE TABLE calve_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT calve_version_pkc PRIMARY KEY (version_num)
);
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
CREATE TABLE delivery_target (
	stream TEXT NOT NULL,
	catalog TEXT NOT NULL,
	table_name TEXT NOT NULL,
	table_uuid TEXT NOT NULL,
	delivered_at VARCHAR(32) NOT NULL,
	PRIMARY KEY (stream, catalog, table_name)
);
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
CREATE TABLE follower (
	name TEXT NOT NULL,
	seq BIGINT NOT NULL,
	PRIMARY KEY (name)
);
CREATE TABLE job_template (
	job_type TEXT NOT NULL,
	version TEXT NOT NULL,
	document TEXT NOT NULL,
	modified_at BIGINT NOT NULL,
	PRIMARY KEY (job_type, version)
);
CREATE TABLE log_chunk (
	attempt_uuid TEXT NOT NULL,
	number INTEGER NOT NULL,
	text TEXT NOT NULL, start BIGINT, line BIGINT, size INTEGER,
	PRIMARY KEY (attempt_uuid, number)
);
CREATE TABLE log_file (
	attempt_uuid TEXT NOT NULL,
	start BIGINT NOT NULL,
	size BIGINT NOT NULL,
	address TEXT NOT NULL,
	PRIMARY KEY (attempt_uuid, start)
);
CREATE TABLE param_set (
	id TEXT NOT NULL,
	definitions TEXT NOT NULL,
	PRIMARY KEY (id)
);
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
CREATE TABLE secret (
	name TEXT NOT NULL,
	sealed TEXT NOT NULL,
	changed_at BIGINT NOT NULL,
	changed_by TEXT NOT NULL,
	PRIMARY KEY (name)
);
CREATE TABLE signal (
	name TEXT NOT NULL,
	seq BIGINT NOT NULL,
	instance_id TEXT NOT NULL,
	params TEXT NOT NULL,
	payload TEXT NOT NULL,
	announced_at BIGINT NOT NULL,
	PRIMARY KEY (name, seq),
	CONSTRAINT signal_instance UNIQUE (name, instance_id)
);
CREATE TABLE signal_name (
	name TEXT NOT NULL,
	last_seq BIGINT NOT NULL,
	PRIMARY KEY (name)
);
CREATE TABLE signal_param (
	name TEXT NOT NULL,
	param TEXT NOT NULL,
	value TEXT NOT NULL,
	seq BIGINT NOT NULL,
	PRIMARY KEY (name, param, value, seq)
);
CREATE TABLE signal_subscription (
	name TEXT NOT NULL,
	workflow_id TEXT NOT NULL,
	trigger_id TEXT NOT NULL,
	PRIMARY KEY (name, workflow_id, trigger_id)
);
CREATE TABLE signal_use (
	name TEXT NOT NULL,
	seq BIGINT NOT NULL,
	kind TEXT NOT NULL,
	run_uuid TEXT NOT NULL,
	attempt_uuid TEXT NOT NULL,
	workflow_id TEXT NOT NULL,
	instance_id BIGINT NOT NULL,
	run_id INTEGER NOT NULL,
	step_id TEXT,
	attempt_id INTEGER,
	PRIMARY KEY (name, seq, kind, run_uuid, attempt_uuid)
);
CREATE TABLE signal_wait (
	attempt_uuid TEXT NOT NULL,
	name TEXT NOT NULL,
	run_uuid TEXT NOT NULL,
	PRIMARY KEY (attempt_uuid, name)
);
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
CREATE TABLE tag_permit (
	tag TEXT NOT NULL,
	max_allowed INTEGER NOT NULL,
	modified_at BIGINT NOT NULL,
	PRIMARY KEY (tag)
);
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
CREATE TABLE "trigger" (
	workflow_id TEXT NOT NULL,
	trigger_id TEXT NOT NULL,
	kind TEXT NOT NULL,
	version_id INTEGER NOT NULL,
	definition TEXT NOT NULL,
	state TEXT NOT NULL,
	due_at BIGINT,
	seq BIGINT NOT NULL,
	made_at BIGINT NOT NULL,
	is_begun BOOLEAN NOT NULL,
	fired_at BIGINT,
	error TEXT,
	failures INTEGER NOT NULL,
	PRIMARY KEY (workflow_id, trigger_id)
);
CREATE TABLE version (
	workflow_id TEXT NOT NULL,
	version_id INTEGER NOT NULL,
	definition TEXT NOT NULL,
	author TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (workflow_id, version_id)
);
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
CREATE TABLE workflow (
	workflow_id TEXT NOT NULL,
	active_version INTEGER,
	latest_version INTEGER NOT NULL,
	properties TEXT NOT NULL,
	strategy TEXT,
	last_instance BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	modified_at BIGINT NOT NULL,
	deleted_at BIGINT, activated_at BIGINT, triggers_version INTEGER,
	PRIMARY KEY (workflow_id)
);
CREATE INDEX access_session_user ON access_session (user);
CREATE UNIQUE INDEX access_token_digest ON access_token (digest);
CREATE INDEX alert_message_due ON alert_message (due_at) WHERE status = 'waiting';
CREATE INDEX alert_message_made ON alert_message (made_at);
CREATE INDEX attempt_paused ON attempt (step_id) WHERE status = 'PAUSED';
CREATE INDEX attempt_rollup ON attempt (root_uuid, status, is_leaf, is_superseded) WHERE length(root_uuid) > 0 AND is_leaf AND NOT is_superseded;
CREATE INDEX attempt_timeout ON attempt (timeout_at) WHERE timeout_at IS NOT NULL AND status IN ('NOT_CREATED', 'CREATED', 'INITIALIZED', 'PAUSED', 'WAITING_FOR_SIGNALS', 'EVALUATING_PARAMS', 'WAITING_FOR_PERMITS', 'STARTING', 'RUNNING', 'FINISHING');
CREATE UNIQUE INDEX capture_key ON capture (consumer, "key") WHERE key IS NOT NULL AND status IN ('open', 'committed');
CREATE UNIQUE INDEX capture_open ON capture (consumer) WHERE status = 'open';
CREATE INDEX capture_uncollected ON capture (created_at) WHERE collected_at IS NULL;
CREATE INDEX delivery_branch_capture ON delivery_branch (capture_id);
CREATE INDEX event_root ON event (root_uuid, seq) WHERE length(root_uuid) > 0;
CREATE INDEX event_run ON event (run_uuid, seq);
CREATE INDEX permit_claim_line ON permit_claim (permit, is_held, priority, seq);
CREATE INDEX run_blocking ON run (workflow_id) WHERE is_blocking;
CREATE INDEX run_child ON run (parent_attempt, instance_id) WHERE parent_attempt IS NOT NULL;
CREATE INDEX run_live ON run (workflow_id, is_queued, instance_id, run_id) WHERE inline_step IS NULL AND status IN ('CREATED', 'IN_PROGRESS', 'PAUSED');
CREATE INDEX run_newest ON run (created_at, uuid) WHERE is_latest AND inline_step IS NULL;
CREATE INDEX run_newest_of ON run (workflow_id, created_at, uuid) WHERE is_latest AND inline_step IS NULL;
CREATE INDEX run_open_child ON run (parent_attempt, status, is_latest) WHERE parent_attempt IS NOT NULL AND is_latest AND status <> 'SUCCEEDED';
CREATE UNIQUE INDEX run_request ON run (workflow_id, request_id) WHERE request_id IS NOT NULL;
CREATE INDEX run_root ON run (root_uuid);
CREATE INDEX run_timeout ON run (timeout_at) WHERE timeout_at IS NOT NULL AND status IN ('CREATED', 'IN_PROGRESS', 'PAUSED');
CREATE INDEX signal_announced ON signal (announced_at, name, seq);
CREATE INDEX signal_param_seq ON signal_param (name, seq);
CREATE INDEX signal_subscription_workflow ON signal_subscription (workflow_id);
CREATE INDEX signal_use_instance ON signal_use (workflow_id, instance_id);
CREATE INDEX signal_wait_name ON signal_wait (name);
CREATE INDEX task_due ON task (kind, due_at) WHERE owner IS NULL;
CREATE INDEX task_free ON task (kind, priority, seq, due_at) WHERE owner IS NULL;
CREATE INDEX task_owner ON task (owner) WHERE owner IS NOT NULL;
CREATE INDEX trigger_due ON "trigger" (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX workflow_unsynced ON workflow (workflow_id) WHERE COALESCE(triggers_version, 0) <> COALESCE(active_version, 0);
INSERT INTO calve_version VALUES ('0009');
