-- A database of schema version 5: written once, when that version was current; never changed.
BEGIN TRANSACTION;
CREATE TABLE attempts (
	study_id INTEGER NOT NULL, 
	trial INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	worker TEXT NOT NULL, 
	started DOUBLE NOT NULL, 
	start_resource DOUBLE NOT NULL, 
	reserved_gpu_seconds DOUBLE NOT NULL, 
	node TEXT, 
	device TEXT, 
	ended DOUBLE, 
	outcome TEXT, 
	gpu_seconds DOUBLE NOT NULL, 
	note TEXT, 
	arithmetic JSON, 
	slowest_pace DOUBLE, 
	start_up_seconds DOUBLE, 
	gpus DOUBLE, 
	first_reserved_gpu_seconds DOUBLE, 
	CONSTRAINT pk_attempts PRIMARY KEY (study_id, trial, number), 
	CONSTRAINT fk_attempts_trials FOREIGN KEY(study_id, trial) REFERENCES trials (study_id, number) ON DELETE CASCADE
);
INSERT INTO "attempts" VALUES(1,0,1,'w0',1.0,0.0,0.0,'n','cpu',3.0,'complete',2.0,NULL,'{"threads":1,"precision":"fp32","deterministic":false,"float32_matmul":"highest","device":"a processor (AVX2)","versions":{"torch":"2.13.0"}}',2.0,0.5,NULL,NULL);
INSERT INTO "attempts" VALUES(1,1,1,'w0',1.0,0.0,0.0,'n','cpu',3.0,'pruned',2.0,NULL,'{"threads":1,"precision":"fp32","deterministic":false,"float32_matmul":"highest","device":"a processor (AVX2)","versions":{"torch":"2.13.0"}}',2.0,0.5,NULL,NULL);
INSERT INTO "attempts" VALUES(1,2,1,'w0',1.0,0.0,0.0,'n','cpu',3.0,'complete',2.0,NULL,'{"threads":1,"precision":"fp32","deterministic":false,"float32_matmul":"highest","device":"a processor (AVX2)","versions":{"torch":"2.13.0"}}',2.0,0.5,NULL,NULL);
CREATE TABLE decisions (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	trial INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	why TEXT NOT NULL, 
	resource DOUBLE NOT NULL, 
	against JSON NOT NULL, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_decisions PRIMARY KEY (id), 
	CONSTRAINT fk_decisions_trials FOREIGN KEY(study_id, trial) REFERENCES trials (study_id, number) ON DELETE CASCADE
);
INSERT INTO "decisions" VALUES(1,1,1,'prune','below the median',1.0,'[0,2]',3.0);
CREATE TABLE environments (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	created DOUBLE NOT NULL, 
	revision TEXT, 
	packages JSON NOT NULL, 
	device TEXT NOT NULL, 
	data_fingerprint TEXT, 
	files JSON, 
	CONSTRAINT pk_environments PRIMARY KEY (id), 
	CONSTRAINT fk_environments_studies FOREIGN KEY(study_id) REFERENCES studies (id) ON DELETE CASCADE
);
INSERT INTO "environments" VALUES(1,1,1.0,'abc','{"torch":"2"}','CPU',NULL,'{"train.py":"ab"}');
CREATE TABLE heartbeats (
	study_id INTEGER NOT NULL, 
	trial INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	owner TEXT NOT NULL, 
	renewed DOUBLE NOT NULL, 
	expires DOUBLE NOT NULL, 
	CONSTRAINT pk_heartbeats PRIMARY KEY (study_id, trial, attempt), 
	CONSTRAINT fk_heartbeats_trials FOREIGN KEY(study_id, trial) REFERENCES trials (study_id, number) ON DELETE CASCADE
);
CREATE TABLE hpsearch_schema (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "hpsearch_schema" VALUES(5);
CREATE TABLE reports (
	study_id INTEGER NOT NULL, 
	trial INTEGER NOT NULL, 
	resource DOUBLE NOT NULL, 
	value DOUBLE, 
	metrics JSON NOT NULL, 
	attempt INTEGER, 
	step BIGINT, 
	elapsed DOUBLE, 
	created DOUBLE NOT NULL, 
	CONSTRAINT pk_reports PRIMARY KEY (study_id, trial, resource), 
	CONSTRAINT fk_reports_trials FOREIGN KEY(study_id, trial) REFERENCES trials (study_id, number) ON DELETE CASCADE
);
INSERT INTO "reports" VALUES(1,0,1.0,0.7,'{"accuracy":0.7,"loss":{"$float":"nan"}}',1,10,2.0,3.0);
INSERT INTO "reports" VALUES(1,1,1.0,0.5,'{"accuracy":0.5,"loss":{"$float":"nan"}}',1,10,2.0,3.0);
INSERT INTO "reports" VALUES(1,2,1.0,0.9,'{"accuracy":0.9,"loss":{"$float":"nan"}}',1,10,2.0,3.0);
CREATE TABLE requests (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	content JSON NOT NULL, 
	origin TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	handled DOUBLE, 
	refused TEXT, 
	trial INTEGER, 
	CONSTRAINT pk_requests PRIMARY KEY (id), 
	CONSTRAINT fk_requests_studies FOREIGN KEY(study_id) REFERENCES studies (id) ON DELETE CASCADE
);
INSERT INTO "requests" VALUES(1,1,'stop','{"trial":1}','ann@desk',5.0,6.0,NULL,1);
INSERT INTO "requests" VALUES(2,1,'propose','{"params":{"learning_rate":2.0}}','ann@desk',2.0,3.0,'learning_rate: must be from 1e-05 to 0.001, not 2.0',NULL);
CREATE TABLE studies (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name TEXT NOT NULL, 
	spec TEXT NOT NULL, 
	directions JSON NOT NULL, 
	state TEXT NOT NULL, 
	reason TEXT, 
	interruption TEXT, 
	created DOUBLE NOT NULL, 
	ended DOUBLE, 
	active_seconds DOUBLE NOT NULL, 
	user_attrs JSON NOT NULL, 
	system_attrs JSON NOT NULL, 
	uid TEXT, 
	base TEXT, 
	checkpoints TEXT, 
	former_checkpoints JSON NOT NULL, 
	step_scale DOUBLE NOT NULL, 
	enqueued JSON NOT NULL, 
	confirmation JSON, 
	warm_start JSON NOT NULL, 
	direction TEXT, 
	lease_owner TEXT, 
	lease_epoch INTEGER DEFAULT '0' NOT NULL, 
	lease_since DOUBLE, 
	lease_expires DOUBLE, 
	stop_requested BOOLEAN DEFAULT '0' NOT NULL, 
	revision BIGINT DEFAULT '0' NOT NULL, 
	alive_at DOUBLE, 
	CONSTRAINT uq_studies_name UNIQUE (name)
);
INSERT INTO "studies" VALUES(1,'flowers','study: flowers
seed: 7
task:
  kind: text_classification
  train: data/train.csv
  validation: 0.25
  text: text
  label: label
  model: {scratch: {layers: 1, width: 16}}
settings:
  schedule: cosine
space:
  learning_rate: {type: float, low: 1.0e-5, high: 1.0e-3, log: true}
  batch_size: {type: categorical, choices: [2, 4]}
objective: {metric: accuracy, direction: maximize}
budget:
  trials: 4
  per_trial: {epochs: 1}
resources: {workers: 1, cpu: 1, gpu: 0}
','["maximize"]','finished','all 3 trials have ended',NULL,1.0,9.0,8.0,'{}','{}','0123456789abcdef0123456789abcdef','/studies','/studies/checkpoints','["/studies/before"]',1000.0,'[{"learning_rate":0.0002}]','{"given":[4,null,null,null,1],"first":2,"search_waits":true}','[]','maximize',NULL,0,NULL,NULL,0,1,3.0);
CREATE TABLE trials (
	study_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	params JSON NOT NULL, 
	value DOUBLE, 
	expected DOUBLE, 
	expected_deviation DOUBLE, 
	expected_low DOUBLE, 
	expected_high DOUBLE, 
	resource DOUBLE NOT NULL, 
	rung INTEGER, 
	seed BIGINT NOT NULL, 
	gpu_seconds DOUBLE NOT NULL, 
	cost DOUBLE, 
	speed DOUBLE, 
	error_kind TEXT, 
	error_text TEXT, 
	checkpoint TEXT, 
	checkpoint_resource DOUBLE, 
	created DOUBLE NOT NULL, 
	started DOUBLE, 
	ended DOUBLE, 
	role TEXT NOT NULL, 
	repeats INTEGER, 
	best_checkpoint TEXT, 
	checkpoint_bytes BIGINT, 
	objective_values JSON, 
	findings JSON NOT NULL, 
	left_as TEXT, 
	forgiven INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	distributions JSON NOT NULL, 
	user_attrs JSON NOT NULL, 
	system_attrs JSON NOT NULL, 
	revision BIGINT NOT NULL, 
	violation DOUBLE DEFAULT '0' NOT NULL, 
	standing DOUBLE, 
	CONSTRAINT pk_trials PRIMARY KEY (study_id, number), 
	CONSTRAINT fk_trials_studies FOREIGN KEY(study_id) REFERENCES studies (id) ON DELETE CASCADE
);
INSERT INTO "trials" VALUES(1,0,'complete','{"learning_rate":0.0001}',0.7,0.71,0.0,NULL,NULL,1.0,NULL,0,2.0,NULL,NULL,NULL,NULL,NULL,NULL,1.0,1.0,3.0,'search',NULL,NULL,NULL,NULL,'[]',NULL,0,1,'{"learning_rate":"{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.001, \"log\": true}}"}','{}','{}',1,0.0,0.71);
INSERT INTO "trials" VALUES(1,1,'pruned','{"learning_rate":0.0002}',0.5,0.55,0.0625,0.45,0.6,1.0,NULL,1,2.0,NULL,NULL,NULL,NULL,NULL,NULL,1.0,1.0,3.0,'enqueued',NULL,NULL,NULL,NULL,'[{"name":"plateau","evidence":"no better for 3 reports","severity":"notice"}]','paused',0,1,'{"learning_rate":"{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.001, \"log\": true}}"}','{}','{}',1,0.0,0.55);
INSERT INTO "trials" VALUES(1,2,'complete','{"learning_rate":0.00030000000000000003}',0.9,NULL,NULL,NULL,NULL,1.0,NULL,2,2.0,NULL,NULL,NULL,NULL,NULL,NULL,1.0,1.0,3.0,'search',NULL,NULL,NULL,NULL,'[]',NULL,0,2,'{"learning_rate":"{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.001, \"log\": true}}"}','{}','{}',1,0.0,0.9);
CREATE TABLE versions (
	study_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	created DOUBLE NOT NULL, 
	origin TEXT NOT NULL, 
	changes JSON NOT NULL, 
	spec TEXT NOT NULL, 
	revision TEXT, 
	new_code BOOLEAN NOT NULL, 
	files JSON NOT NULL, 
	CONSTRAINT pk_versions PRIMARY KEY (study_id, number), 
	CONSTRAINT fk_versions_studies FOREIGN KEY(study_id) REFERENCES studies (id) ON DELETE CASCADE
);
INSERT INTO "versions" VALUES(1,1,1.0,'ada@lab','[]','study: flowers
seed: 7
task:
  kind: text_classification
  train: data/train.csv
  validation: 0.25
  text: text
  label: label
  model: {scratch: {layers: 1, width: 16}}
settings:
  schedule: cosine
space:
  learning_rate: {type: float, low: 1.0e-5, high: 1.0e-3, log: true}
  batch_size: {type: categorical, choices: [2, 4]}
objective: {metric: accuracy, direction: maximize}
budget:
  trials: 4
  per_trial: {epochs: 1}
resources: {workers: 1, cpu: 1, gpu: 0}
','abc',0,'{"train.py":"0f"}');
INSERT INTO "versions" VALUES(1,2,2.0,'ada@lab','["train.py has changed"]','study: flowers
seed: 7
task:
  kind: text_classification
  train: data/train.csv
  validation: 0.25
  text: text
  label: label
  model: {scratch: {layers: 1, width: 16}}
settings:
  schedule: cosine
space:
  learning_rate: {type: float, low: 1.0e-5, high: 1.0e-3, log: true}
  batch_size: {type: categorical, choices: [2, 4]}
objective: {metric: accuracy, direction: maximize}
budget:
  trials: 4
  per_trial: {epochs: 1}
resources: {workers: 1, cpu: 1, gpu: 0}
','abd',1,'{"train.py":"1f"}');
CREATE TABLE revisions (
	study_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	created DOUBLE NOT NULL, 
	origin TEXT NOT NULL, 
	why TEXT NOT NULL, 
	"commit" TEXT NOT NULL, 
	patch TEXT NOT NULL, 
	harness JSON NOT NULL, 
	trial INTEGER NOT NULL, 
	verdict TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	evidence DOUBLE NOT NULL, 
	pairs INTEGER NOT NULL, 
	decided DOUBLE, 
	CONSTRAINT pk_revisions PRIMARY KEY (study_id, number), 
	CONSTRAINT fk_revisions_studies FOREIGN KEY(study_id) REFERENCES studies (id) ON DELETE CASCADE
);
INSERT INTO "revisions" VALUES(1,1,2.0,'ada@lab','a wider layer','1f477696ee7229e47c46fe705436992f3a2b8adc','--- a/train.py
+++ b/train.py
@@ -1 +1 @@
-WIDTH = 16
+WIDTH = 32
','{"measure.py":"1f"}',2,'keep','better by 0.02 (at least 0.008) over 9 pairs',71.5,9,3.0);
CREATE INDEX ix_trials_study_id_revision ON trials (study_id, revision);
CREATE INDEX ix_trials_study_id_role ON trials (study_id, role) WHERE role != 'search';
CREATE INDEX ix_trials_study_id_state ON trials (study_id, state);
CREATE INDEX ix_trials_study_id_violation_standing ON trials (study_id, violation, standing) WHERE standing IS NOT NULL;
CREATE INDEX ix_environments_study_id ON environments (study_id);
CREATE INDEX ix_requests_study_id ON requests (study_id);
CREATE INDEX ix_attempts_study_id_trial ON attempts (study_id, trial) WHERE outcome IS NULL;
CREATE INDEX ix_decisions_study_id_trial ON decisions (study_id, trial);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('studies',1);
COMMIT;
