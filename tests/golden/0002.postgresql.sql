BEGIN;

CREATE TABLE cpstore_alembic_version (
    version_num VARCHAR(32) NOT NULL, 
    CONSTRAINT cpstore_alembic_version_pkc PRIMARY KEY (version_num)
);

-- Running upgrade  -> 0001

CREATE TABLE checkpoints (
    thread_id TEXT COLLATE "C" NOT NULL, 
    checkpoint_ns TEXT COLLATE "C" DEFAULT '' NOT NULL, 
    checkpoint_id TEXT COLLATE "C" NOT NULL, 
    parent_checkpoint_id TEXT COLLATE "C", 
    type TEXT COLLATE "C", 
    checkpoint JSONB NOT NULL, 
    metadata JSONB DEFAULT '{}' NOT NULL, 
    CONSTRAINT checkpoints_pkey PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);

CREATE TABLE checkpoint_blobs (
    thread_id TEXT COLLATE "C" NOT NULL, 
    checkpoint_ns TEXT COLLATE "C" DEFAULT '' NOT NULL, 
    channel TEXT COLLATE "C" NOT NULL, 
    version TEXT COLLATE "C" NOT NULL, 
    type TEXT COLLATE "C" NOT NULL, 
    blob BYTEA, 
    CONSTRAINT checkpoint_blobs_pkey PRIMARY KEY (thread_id, checkpoint_ns, channel, version)
);

CREATE TABLE checkpoint_writes (
    thread_id TEXT COLLATE "C" NOT NULL, 
    checkpoint_ns TEXT COLLATE "C" DEFAULT '' NOT NULL, 
    checkpoint_id TEXT COLLATE "C" NOT NULL, 
    task_id TEXT COLLATE "C" NOT NULL, 
    idx INTEGER NOT NULL, 
    channel TEXT COLLATE "C" NOT NULL, 
    type TEXT COLLATE "C", 
    blob BYTEA NOT NULL, 
    task_path TEXT COLLATE "C" DEFAULT '' NOT NULL, 
    CONSTRAINT checkpoint_writes_pkey PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);

INSERT INTO cpstore_alembic_version (version_num) VALUES ('0001') RETURNING cpstore_alembic_version.version_num;

-- Running upgrade 0001 -> 0002

CREATE INDEX checkpoints_run_id_idx ON checkpoints ((metadata ->> 'run_id'));

CREATE INDEX checkpoints_checkpoint_id_idx ON checkpoints (checkpoint_id, thread_id, checkpoint_ns);

UPDATE cpstore_alembic_version SET version_num='0002' WHERE cpstore_alembic_version.version_num = '0001';

COMMIT;


INSERT INTO checkpoints VALUES ('golden', '', '1f1ed75e-03cd-6ed1-bffe-6cc6a835af97', NULL, NULL, '{"v": 4, "id": "1f1ed75e-03cd-6ed1-bffe-6cc6a835af97", "ts": "2026-12-01T10:56:35.423842+00:00", "pending_sends": [], "versions_seen": {}, "channel_values": {"word": "word"}, "channel_versions": {"list": "1", "word": "1"}, "updated_channels": null}', '{"step": 0, "word": "word", "run_id": "run 0"}');
INSERT INTO checkpoints VALUES ('golden', '', '1f1ed75e-03de-68fc-bffe-4f3032bc65d8', '1f1ed75e-03cd-6ed1-bffe-6cc6a835af97', NULL, '{"v": 4, "id": "1f1ed75e-03de-68fc-bffe-4f3032bc65d8", "ts": "2026-12-01T10:56:35.430657+00:00", "pending_sends": [], "versions_seen": {}, "channel_values": {"word": "word"}, "channel_versions": {"list": "2", "word": "2"}, "updated_channels": null}', '{"step": 1, "word": "word", "run_id": "run 1"}');
INSERT INTO checkpoints VALUES ('golden', '', '1f1ed75e-03e4-698c-bffe-b09982fd3d85', '1f1ed75e-03de-68fc-bffe-4f3032bc65d8', NULL, '{"v": 4, "id": "1f1ed75e-03e4-698c-bffe-b09982fd3d85", "ts": "2026-12-01T10:56:35.433118+00:00", "pending_sends": [], "versions_seen": {}, "channel_values": {"word": "word"}, "channel_versions": {"list": "3", "word": "3"}, "updated_channels": null}', '{"step": 2, "word": "word", "run_id": "run 2"}');
INSERT INTO checkpoints VALUES ('golden', 'node:1', '1f1ed75e-03e7-6ad8-bffe-3fefb3e63512', NULL, NULL, '{"v": 4, "id": "1f1ed75e-03e7-6ad8-bffe-3fefb3e63512", "ts": "2026-12-01T10:56:35.434380+00:00", "pending_sends": [], "versions_seen": {}, "channel_values": {"word": "inner"}, "channel_versions": {"list": "1", "word": "1"}, "updated_channels": null}', '{"step": 0, "word": "inner", "run_id": "run 0"}');
INSERT INTO checkpoint_blobs VALUES ('golden', '', 'list', '1', 'msgpack', E'\\x90');
INSERT INTO checkpoint_blobs VALUES ('golden', '', 'list', '2', 'msgpack', E'\\x91a4776f7264');
INSERT INTO checkpoint_blobs VALUES ('golden', '', 'list', '3', 'msgpack', E'\\x92a4776f7264a4776f7264');
INSERT INTO checkpoint_blobs VALUES ('golden', 'node:1', 'list', '1', 'msgpack', E'\\x90');
INSERT INTO checkpoint_writes VALUES ('golden', '', '1f1ed75e-03cd-6ed1-bffe-6cc6a835af97', 'task 0', '-1', '__error__', 'msgpack', E'\\xa165', 'path');
INSERT INTO checkpoint_writes VALUES ('golden', '', '1f1ed75e-03cd-6ed1-bffe-6cc6a835af97', 'task 0', '0', 'log', 'msgpack', E'\\x9100', 'path');
INSERT INTO checkpoint_writes VALUES ('golden', '', '1f1ed75e-03de-68fc-bffe-4f3032bc65d8', 'task 1', '-1', '__error__', 'msgpack', E'\\xa165', 'path');
INSERT INTO checkpoint_writes VALUES ('golden', '', '1f1ed75e-03de-68fc-bffe-4f3032bc65d8', 'task 1', '0', 'log', 'msgpack', E'\\x9101', 'path');
INSERT INTO checkpoint_writes VALUES ('golden', '', '1f1ed75e-03e4-698c-bffe-b09982fd3d85', 'task 2', '-1', '__error__', 'msgpack', E'\\xa165', 'path');
INSERT INTO checkpoint_writes VALUES ('golden', '', '1f1ed75e-03e4-698c-bffe-b09982fd3d85', 'task 2', '0', 'log', 'msgpack', E'\\x9102', 'path');
