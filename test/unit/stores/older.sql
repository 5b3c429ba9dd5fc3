-- A store as Sluice wrote it before groups had plugins, services certificates, and consumers their history
-- (f94023c): what sqlite3's .dump says of it, and the numbers in its head.
PRAGMA application_id=1399616873;
PRAGMA user_version=1;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE meta (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        uuid TEXT NOT NULL,
        revision INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        compacted INTEGER NOT NULL,
        is_backup INTEGER NOT NULL,
        origin TEXT,
        packed_as TEXT);
INSERT INTO meta VALUES(1,'e34d6cdc-a9e1-4c66-884d-5207fdd94de4',10,9,0,0,NULL,'certificates 2 snis 2 ca_certificates 2 services 2 upstreams 2 consumer_groups 2 consumers 2 consumer_group_consumers 2 routes 2 targets 2 vaults 2 keyauth_credentials 2 plugins 2 key-auth=0.1.0 rate-limiting=0.1.0 names 2');
CREATE TABLE kind (
        name TEXT PRIMARY KEY,
        space TEXT NOT NULL,
        columns TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO kind VALUES('ca_certificates','ca_certificates','["u_cert_digest","tags","packed 2"]');
INSERT INTO kind VALUES('certificates','certificates','["tags","packed 2"]');
INSERT INTO kind VALUES('consumer_group_consumers','consumer_group_consumers','["f_consumer_group_cascade","f_consumer_cascade","k_cache_key","packed 2"]');
INSERT INTO kind VALUES('consumer_groups','consumer_groups','["u_name","tags","packed 2"]');
INSERT INTO kind VALUES('consumers','consumers','["u_username","u_custom_id","tags","packed 2"]');
INSERT INTO kind VALUES('keyauth_credentials','credentials','["f_consumer_cascade","u_key","tags","packed 2"]');
INSERT INTO kind VALUES('names','names','["u_name","packed 2"]');
INSERT INTO kind VALUES('plugins','plugins','["u_instance_name","f_route_cascade","f_service_cascade","f_consumer_cascade","f_consumer_group_cascade","k_cache_key","tags","packed 2 key-auth=0.1.0 rate-limiting=0.1.0"]');
INSERT INTO kind VALUES('routes','routes','["u_name","f_service_restrict","tags","packed 2"]');
INSERT INTO kind VALUES('services','services','["u_name","f_client_certificate_restrict","tags","packed 2"]');
INSERT INTO kind VALUES('snis','snis','["u_name","f_certificate_cascade","tags","packed 2"]');
INSERT INTO kind VALUES('targets','targets','["f_upstream_cascade","n_target","k_cache_key","tags","packed 2"]');
INSERT INTO kind VALUES('upstreams','upstreams','["u_name","f_client_certificate_restrict","tags","packed 2"]');
INSERT INTO kind VALUES('vaults','vaults','["u_prefix","tags","packed 2"]');
CREATE TABLE space (
        name TEXT PRIMARY KEY,
        next_slot INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO space VALUES('ca_certificates',0);
INSERT INTO space VALUES('certificates',0);
INSERT INTO space VALUES('consumer_group_consumers',0);
INSERT INTO space VALUES('consumer_groups',0);
INSERT INTO space VALUES('consumers',1);
INSERT INTO space VALUES('credentials',1);
INSERT INTO space VALUES('names',0);
INSERT INTO space VALUES('plugins',2);
INSERT INTO space VALUES('routes',1);
INSERT INTO space VALUES('services',2);
INSERT INTO space VALUES('snis',0);
INSERT INTO space VALUES('targets',1);
INSERT INTO space VALUES('upstreams',1);
INSERT INTO space VALUES('vaults',0);
CREATE TABLE gone (
        kind TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        id TEXT NOT NULL,
        revision INTEGER NOT NULL,
        released INTEGER NOT NULL,
        PRIMARY KEY (kind, slot, generation)) WITHOUT ROWID;
INSERT INTO gone VALUES('services',1,1,'e1d1a0cc-fd6c-4d89-8cdf-6e270ca52586',10,0);
CREATE TABLE free_slot (
        space TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        PRIMARY KEY (space, slot)) WITHOUT ROWID;
CREATE TABLE e_certificates (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB);
CREATE TABLE e_snis (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB, u_name TEXT, f_certificate_cascade TEXT REFERENCES e_certificates (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE e_ca_certificates (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB, u_cert_digest TEXT);
CREATE TABLE e_services (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB, u_name TEXT, f_client_certificate_restrict TEXT REFERENCES e_certificates (id) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO e_services VALUES(3,'36594a2c-da03-4db6-b3b9-4f45e2b8d7e2',0,1,3,1795389242.0,1795389242.0,'{"connect_timeout":60000,"enabled":true,"host":"pool","id":"36594a2c-da03-4db6-b3b9-4f45e2b8d7e2","name":"shop","path":"/api","port":80,"protocol":"http","read_timeout":60000,"retries":5,"tags":["a","b"],"write_timeout":60000,"created_at":1795389242,"updated_at":1795389242}',X'00000000000000000400000073686f7004000000706f6f6c040000002f6170690500500060ea000060ea000060ea0000','shop',NULL);
CREATE TABLE e_upstreams (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB, u_name TEXT, f_client_certificate_restrict TEXT REFERENCES e_certificates (id) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO e_upstreams VALUES(1,'2a981969-f038-4c67-9e44-7b7d859ac938',0,1,1,1795389242.0,1795389242.0,'{"algorithm":"round-robin","hash_fallback":"none","hash_on":"none","hash_on_cookie_path":"/","healthchecks":{"active":{"concurrency":10,"healthy":{"http_statuses":[200,302],"interval":0,"successes":0},"http_path":"/","https_verify_certificate":true,"timeout":1,"type":"http","unhealthy":{"http_failures":0,"http_statuses":[429,404,500,501,502,503,504,505],"interval":0,"tcp_failures":0,"timeouts":0}},"passive":{"healthy":{"http_statuses":[200,201,202,203,204,205,206,207,208,226,300,301,302,303,304,305,306,307,308],"successes":0},"type":"http","unhealthy":{"http_failures":0,"http_statuses":[429,500,503],"tcp_failures":0,"timeouts":0}},"threshold":0},"id":"2a981969-f038-4c67-9e44-7b7d859ac938","name":"pool","slots":10000,"use_srv_name":false,"created_at":1795389242,"updated_at":1795389242}',X'0000000004000000706f6f6cffffffff10270000','pool',NULL);
CREATE TABLE e_consumer_groups (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB, u_name TEXT);
CREATE TABLE e_consumers (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB, u_username TEXT, u_custom_id TEXT);
INSERT INTO e_consumers VALUES(6,'b4b110bd-e1b5-4de1-831a-517465acdd43',0,1,6,1795389242.0,1795389242.0,'{"custom_id":"1","id":"b4b110bd-e1b5-4de1-831a-517465acdd43","username":"alice","created_at":1795389242,"updated_at":1795389242}',X'0000000005000000616c6963650100000031','alice','1');
CREATE TABLE e_consumer_group_consumers (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB, f_consumer_group_cascade TEXT REFERENCES e_consumer_groups (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED, f_consumer_cascade TEXT REFERENCES e_consumers (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED, k_cache_key TEXT);
CREATE TABLE e_routes (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB, u_name TEXT, f_service_restrict TEXT REFERENCES e_services (id) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO e_routes VALUES(4,'3423ec67-03bd-45ff-b3c6-dc1221f69b6d',0,1,4,1795389242.0,1795389242.0,'{"hosts":["shop.example.com"],"https_redirect_status_code":426,"id":"3423ec67-03bd-45ff-b3c6-dc1221f69b6d","name":"orders","path_handling":"v0","paths":["/orders"],"preserve_host":false,"protocols":["http","https"],"regex_priority":0,"request_buffering":true,"response_buffering":true,"service":{"id":"36594a2c-da03-4db6-b3b9-4f45e2b8d7e2"},"strip_path":true,"tags":["b"],"created_at":1795389242,"updated_at":1795389242}',X'0000000001000000060000006f7264657273010000001000000073686f702e6578616d706c652e636f6d01000000070000002f6f7264657273000000000000000000000000','orders','36594a2c-da03-4db6-b3b9-4f45e2b8d7e2');
CREATE TABLE e_targets (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB, f_upstream_cascade TEXT REFERENCES e_upstreams (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED, n_target TEXT, k_cache_key TEXT);
INSERT INTO e_targets VALUES(2,'53ff6709-6376-47e7-8531-ef73cbfd7f16',0,1,2,1795389242.6510000228,1795389242.6510000228,'{"id":"53ff6709-6376-47e7-8531-ef73cbfd7f16","target":"127.0.0.1:8080","upstream":{"id":"2a981969-f038-4c67-9e44-7b7d859ac938"},"weight":10,"created_at":1795389242.651,"updated_at":1795389242.651}',X'000000000e0000003132372e302e302e313a383038300a000000','2a981969-f038-4c67-9e44-7b7d859ac938','127.0.0.1:8080','36:2a981969-f038-4c67-9e44-7b7d859ac938,14:127.0.0.1:8080');
CREATE TABLE e_vaults (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB, u_prefix TEXT);
CREATE TABLE e_keyauth_credentials (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB, f_consumer_cascade TEXT REFERENCES e_consumers (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED, u_key TEXT);
INSERT INTO e_keyauth_credentials VALUES(7,'731346ef-dce2-451b-a690-c82447c8f4d7',0,1,7,1795389242.0,NULL,'{"consumer":{"id":"b4b110bd-e1b5-4de1-831a-517465acdd43"},"id":"731346ef-dce2-451b-a690-c82447c8f4d7","key":"alices-key","created_at":1795389242}',X'000000000a000000616c696365732d6b6579','b4b110bd-e1b5-4de1-831a-517465acdd43','alices-key');
CREATE TABLE e_plugins (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB, u_instance_name TEXT, f_route_cascade TEXT REFERENCES e_routes (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED, f_service_cascade TEXT REFERENCES e_services (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED, f_consumer_cascade TEXT REFERENCES e_consumers (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED, f_consumer_group_cascade TEXT REFERENCES e_consumer_groups (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED, k_cache_key TEXT);
INSERT INTO e_plugins VALUES(8,'94ed2094-036b-43fc-b18c-57347532ddbb',0,1,8,1795389243.0,1795389243.0,'{"config":{"hide_credentials":false,"key_in_body":false,"key_in_header":true,"key_in_query":true,"key_names":["apikey"],"run_on_preflight":true},"enabled":true,"id":"94ed2094-036b-43fc-b18c-57347532ddbb","name":"key-auth","protocols":["grpc","grpcs","http","https"],"route":{"id":"3423ec67-03bd-45ff-b3c6-dc1221f69b6d"},"created_at":1795389243,"updated_at":1795389243}',X'00000000080000006b65792d617574681d00000016000000ffffffff030000004b657901000000060000006170696b6579',NULL,'3423ec67-03bd-45ff-b3c6-dc1221f69b6d',NULL,NULL,NULL,'8:key-auth,36:3423ec67-03bd-45ff-b3c6-dc1221f69b6d,-,-');
INSERT INTO e_plugins VALUES(9,'e3fcef03-7f43-4746-b26a-c7c2edc3edd9',1,1,9,1795389243.0,1795389243.0,'{"config":{"error_code":429,"error_message":"API rate limit exceeded","fault_tolerant":true,"hide_client_headers":false,"limit_by":"consumer","minute":100,"policy":"local","redis":{"cloud_authentication":{},"database":0,"port":6379,"ssl":false,"ssl_verify":false,"timeout":2000},"sync_rate":-1},"enabled":true,"id":"e3fcef03-7f43-4746-b26a-c7c2edc3edd9","name":"rate-limiting","protocols":["grpc","grpcs","http","https"],"created_at":1795389243,"updated_at":1795389243}',X'000000000d000000726174652d6c696d6974696e676b00000000000000000000000000000000005940000000000000000000000000000000000000000000000000000000000000000008000000636f6e73756d6572ffffffffffffffffad010000170000004150492072617465206c696d69742065786365656465640100000000000000',NULL,NULL,NULL,NULL,NULL,'13:rate-limiting,-,-,-');
CREATE TABLE e_names (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB, u_name TEXT);
CREATE TABLE t_certificates (
        tag TEXT NOT NULL,
        sequence INTEGER NOT NULL
            REFERENCES e_certificates (sequence) ON DELETE CASCADE ON UPDATE CASCADE,
        PRIMARY KEY (tag, sequence)) WITHOUT ROWID;
CREATE TABLE t_snis (
        tag TEXT NOT NULL,
        sequence INTEGER NOT NULL
            REFERENCES e_snis (sequence) ON DELETE CASCADE ON UPDATE CASCADE,
        PRIMARY KEY (tag, sequence)) WITHOUT ROWID;
CREATE TABLE t_ca_certificates (
        tag TEXT NOT NULL,
        sequence INTEGER NOT NULL
            REFERENCES e_ca_certificates (sequence) ON DELETE CASCADE ON UPDATE CASCADE,
        PRIMARY KEY (tag, sequence)) WITHOUT ROWID;
CREATE TABLE t_services (
        tag TEXT NOT NULL,
        sequence INTEGER NOT NULL
            REFERENCES e_services (sequence) ON DELETE CASCADE ON UPDATE CASCADE,
        PRIMARY KEY (tag, sequence)) WITHOUT ROWID;
INSERT INTO t_services VALUES('a',3);
INSERT INTO t_services VALUES('b',3);
CREATE TABLE t_upstreams (
        tag TEXT NOT NULL,
        sequence INTEGER NOT NULL
            REFERENCES e_upstreams (sequence) ON DELETE CASCADE ON UPDATE CASCADE,
        PRIMARY KEY (tag, sequence)) WITHOUT ROWID;
CREATE TABLE t_consumer_groups (
        tag TEXT NOT NULL,
        sequence INTEGER NOT NULL
            REFERENCES e_consumer_groups (sequence) ON DELETE CASCADE ON UPDATE CASCADE,
        PRIMARY KEY (tag, sequence)) WITHOUT ROWID;
CREATE TABLE t_consumers (
        tag TEXT NOT NULL,
        sequence INTEGER NOT NULL
            REFERENCES e_consumers (sequence) ON DELETE CASCADE ON UPDATE CASCADE,
        PRIMARY KEY (tag, sequence)) WITHOUT ROWID;
CREATE TABLE t_routes (
        tag TEXT NOT NULL,
        sequence INTEGER NOT NULL
            REFERENCES e_routes (sequence) ON DELETE CASCADE ON UPDATE CASCADE,
        PRIMARY KEY (tag, sequence)) WITHOUT ROWID;
INSERT INTO t_routes VALUES('b',4);
CREATE TABLE t_targets (
        tag TEXT NOT NULL,
        sequence INTEGER NOT NULL
            REFERENCES e_targets (sequence) ON DELETE CASCADE ON UPDATE CASCADE,
        PRIMARY KEY (tag, sequence)) WITHOUT ROWID;
CREATE TABLE t_vaults (
        tag TEXT NOT NULL,
        sequence INTEGER NOT NULL
            REFERENCES e_vaults (sequence) ON DELETE CASCADE ON UPDATE CASCADE,
        PRIMARY KEY (tag, sequence)) WITHOUT ROWID;
CREATE TABLE t_keyauth_credentials (
        tag TEXT NOT NULL,
        sequence INTEGER NOT NULL
            REFERENCES e_keyauth_credentials (sequence) ON DELETE CASCADE ON UPDATE CASCADE,
        PRIMARY KEY (tag, sequence)) WITHOUT ROWID;
CREATE TABLE t_plugins (
        tag TEXT NOT NULL,
        sequence INTEGER NOT NULL
            REFERENCES e_plugins (sequence) ON DELETE CASCADE ON UPDATE CASCADE,
        PRIMARY KEY (tag, sequence)) WITHOUT ROWID;
CREATE TABLE history (
        revision INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        by TEXT);
INSERT INTO history VALUES(1,1795389242,'anyone from 127.0.0.1');
INSERT INTO history VALUES(2,1795389242,'anyone from 127.0.0.1');
INSERT INTO history VALUES(3,1795389242,'anyone from 127.0.0.1');
INSERT INTO history VALUES(4,1795389242,'anyone from 127.0.0.1');
INSERT INTO history VALUES(5,1795389242,'anyone from 127.0.0.1');
INSERT INTO history VALUES(6,1795389242,'anyone from 127.0.0.1');
INSERT INTO history VALUES(7,1795389242,'anyone from 127.0.0.1');
INSERT INTO history VALUES(8,1795389243,'anyone from 127.0.0.1');
INSERT INTO history VALUES(9,1795389243,'anyone from 127.0.0.1');
INSERT INTO history VALUES(10,1795389243,'anyone from 127.0.0.1');
CREATE TABLE history_item (
        revision INTEGER NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        sequence INTEGER NOT NULL,
        what TEXT NOT NULL,
        before TEXT);
INSERT INTO history_item VALUES(1,'upstreams','2a981969-f038-4c67-9e44-7b7d859ac938',1,'created',NULL);
INSERT INTO history_item VALUES(2,'targets','53ff6709-6376-47e7-8531-ef73cbfd7f16',2,'created',NULL);
INSERT INTO history_item VALUES(3,'services','36594a2c-da03-4db6-b3b9-4f45e2b8d7e2',3,'created',NULL);
INSERT INTO history_item VALUES(4,'routes','3423ec67-03bd-45ff-b3c6-dc1221f69b6d',4,'created',NULL);
INSERT INTO history_item VALUES(5,'services','e1d1a0cc-fd6c-4d89-8cdf-6e270ca52586',5,'created',NULL);
INSERT INTO history_item VALUES(6,'consumers','b4b110bd-e1b5-4de1-831a-517465acdd43',6,'created',NULL);
INSERT INTO history_item VALUES(7,'keyauth_credentials','731346ef-dce2-451b-a690-c82447c8f4d7',7,'created',NULL);
INSERT INTO history_item VALUES(8,'plugins','94ed2094-036b-43fc-b18c-57347532ddbb',8,'created',NULL);
INSERT INTO history_item VALUES(9,'plugins','e3fcef03-7f43-4746-b26a-c7c2edc3edd9',9,'created',NULL);
INSERT INTO history_item VALUES(10,'services','e1d1a0cc-fd6c-4d89-8cdf-6e270ca52586',5,'deleted','{"connect_timeout":60000,"enabled":true,"host":"127.0.0.1","id":"e1d1a0cc-fd6c-4d89-8cdf-6e270ca52586","name":"gone","port":9,"protocol":"http","read_timeout":60000,"retries":5,"write_timeout":60000,"created_at":1795389242,"updated_at":1795389242}');
CREATE TABLE history_reach (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        revision INTEGER NOT NULL);
INSERT INTO history_reach VALUES(1,0);
CREATE INDEX gone_revision ON gone (revision);
CREATE UNIQUE INDEX i_certificates ON e_certificates (id);
CREATE UNIQUE INDEX l_certificates ON e_certificates (slot);
CREATE INDEX r_certificates ON e_certificates (revision);
CREATE TRIGGER g_certificates AFTER DELETE ON e_certificates BEGIN
        INSERT INTO gone SELECT 'certificates', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END;
CREATE UNIQUE INDEX i_snis ON e_snis (id);
CREATE UNIQUE INDEX l_snis ON e_snis (slot);
CREATE INDEX r_snis ON e_snis (revision);
CREATE TRIGGER g_snis AFTER DELETE ON e_snis BEGIN
        INSERT INTO gone SELECT 'snis', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END;
CREATE UNIQUE INDEX i_ca_certificates ON e_ca_certificates (id);
CREATE UNIQUE INDEX l_ca_certificates ON e_ca_certificates (slot);
CREATE INDEX r_ca_certificates ON e_ca_certificates (revision);
CREATE TRIGGER g_ca_certificates AFTER DELETE ON e_ca_certificates BEGIN
        INSERT INTO gone SELECT 'ca_certificates', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END;
CREATE UNIQUE INDEX i_services ON e_services (id);
CREATE UNIQUE INDEX l_services ON e_services (slot);
CREATE INDEX r_services ON e_services (revision);
CREATE TRIGGER g_services AFTER DELETE ON e_services BEGIN
        INSERT INTO gone SELECT 'services', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END;
CREATE UNIQUE INDEX i_upstreams ON e_upstreams (id);
CREATE UNIQUE INDEX l_upstreams ON e_upstreams (slot);
CREATE INDEX r_upstreams ON e_upstreams (revision);
CREATE TRIGGER g_upstreams AFTER DELETE ON e_upstreams BEGIN
        INSERT INTO gone SELECT 'upstreams', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END;
CREATE UNIQUE INDEX i_consumer_groups ON e_consumer_groups (id);
CREATE UNIQUE INDEX l_consumer_groups ON e_consumer_groups (slot);
CREATE INDEX r_consumer_groups ON e_consumer_groups (revision);
CREATE TRIGGER g_consumer_groups AFTER DELETE ON e_consumer_groups BEGIN
        INSERT INTO gone SELECT 'consumer_groups', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END;
CREATE UNIQUE INDEX i_consumers ON e_consumers (id);
CREATE UNIQUE INDEX l_consumers ON e_consumers (slot);
CREATE INDEX r_consumers ON e_consumers (revision);
CREATE TRIGGER g_consumers AFTER DELETE ON e_consumers BEGIN
        INSERT INTO gone SELECT 'consumers', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END;
CREATE UNIQUE INDEX i_consumer_group_consumers ON e_consumer_group_consumers (id);
CREATE UNIQUE INDEX l_consumer_group_consumers ON e_consumer_group_consumers (slot);
CREATE INDEX r_consumer_group_consumers ON e_consumer_group_consumers (revision);
CREATE TRIGGER g_consumer_group_consumers AFTER DELETE ON e_consumer_group_consumers BEGIN
        INSERT INTO gone SELECT 'consumer_group_consumers', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END;
CREATE UNIQUE INDEX i_routes ON e_routes (id);
CREATE UNIQUE INDEX l_routes ON e_routes (slot);
CREATE INDEX r_routes ON e_routes (revision);
CREATE TRIGGER g_routes AFTER DELETE ON e_routes BEGIN
        INSERT INTO gone SELECT 'routes', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END;
CREATE UNIQUE INDEX i_targets ON e_targets (id);
CREATE UNIQUE INDEX l_targets ON e_targets (slot);
CREATE INDEX r_targets ON e_targets (revision);
CREATE TRIGGER g_targets AFTER DELETE ON e_targets BEGIN
        INSERT INTO gone SELECT 'targets', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END;
CREATE UNIQUE INDEX i_vaults ON e_vaults (id);
CREATE UNIQUE INDEX l_vaults ON e_vaults (slot);
CREATE INDEX r_vaults ON e_vaults (revision);
CREATE TRIGGER g_vaults AFTER DELETE ON e_vaults BEGIN
        INSERT INTO gone SELECT 'vaults', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END;
CREATE UNIQUE INDEX i_keyauth_credentials ON e_keyauth_credentials (id);
CREATE UNIQUE INDEX l_keyauth_credentials ON e_keyauth_credentials (slot);
CREATE INDEX r_keyauth_credentials ON e_keyauth_credentials (revision);
CREATE TRIGGER g_keyauth_credentials AFTER DELETE ON e_keyauth_credentials BEGIN
        INSERT INTO gone SELECT 'keyauth_credentials', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END;
CREATE UNIQUE INDEX i_plugins ON e_plugins (id);
CREATE UNIQUE INDEX l_plugins ON e_plugins (slot);
CREATE INDEX r_plugins ON e_plugins (revision);
CREATE TRIGGER g_plugins AFTER DELETE ON e_plugins BEGIN
        INSERT INTO gone SELECT 'plugins', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END;
CREATE UNIQUE INDEX i_names ON e_names (id);
CREATE UNIQUE INDEX l_names ON e_names (slot);
CREATE INDEX r_names ON e_names (revision);
CREATE TRIGGER g_names AFTER DELETE ON e_names BEGIN
        INSERT INTO gone SELECT 'names', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END;
CREATE INDEX s_certificates ON t_certificates (sequence);
CREATE INDEX s_snis ON t_snis (sequence);
CREATE UNIQUE INDEX x_snis_u_name ON e_snis (u_name);
CREATE INDEX x_snis_f_certificate_cascade ON e_snis (f_certificate_cascade);
CREATE INDEX s_ca_certificates ON t_ca_certificates (sequence);
CREATE UNIQUE INDEX x_ca_certificates_u_cert_digest ON e_ca_certificates (u_cert_digest);
CREATE INDEX s_services ON t_services (sequence);
CREATE UNIQUE INDEX x_services_u_name ON e_services (u_name);
CREATE INDEX x_services_f_client_certificate_restrict ON e_services (f_client_certificate_restrict);
CREATE INDEX s_upstreams ON t_upstreams (sequence);
CREATE UNIQUE INDEX x_upstreams_u_name ON e_upstreams (u_name);
CREATE INDEX x_upstreams_f_client_certificate_restrict ON e_upstreams (f_client_certificate_restrict);
CREATE INDEX s_consumer_groups ON t_consumer_groups (sequence);
CREATE UNIQUE INDEX x_consumer_groups_u_name ON e_consumer_groups (u_name);
CREATE INDEX s_consumers ON t_consumers (sequence);
CREATE UNIQUE INDEX x_consumers_u_username ON e_consumers (u_username);
CREATE UNIQUE INDEX x_consumers_u_custom_id ON e_consumers (u_custom_id);
CREATE INDEX x_consumer_group_consumers_f_consumer_group_cascade ON e_consumer_group_consumers (f_consumer_group_cascade);
CREATE INDEX x_consumer_group_consumers_f_consumer_cascade ON e_consumer_group_consumers (f_consumer_cascade);
CREATE UNIQUE INDEX x_consumer_group_consumers_k_cache_key ON e_consumer_group_consumers (k_cache_key);
CREATE INDEX s_routes ON t_routes (sequence);
CREATE UNIQUE INDEX x_routes_u_name ON e_routes (u_name);
CREATE INDEX x_routes_f_service_restrict ON e_routes (f_service_restrict);
CREATE INDEX s_targets ON t_targets (sequence);
CREATE INDEX x_targets_f_upstream_cascade ON e_targets (f_upstream_cascade);
CREATE INDEX x_targets_n_target ON e_targets (n_target);
CREATE UNIQUE INDEX x_targets_k_cache_key ON e_targets (k_cache_key);
CREATE INDEX s_vaults ON t_vaults (sequence);
CREATE UNIQUE INDEX x_vaults_u_prefix ON e_vaults (u_prefix);
CREATE INDEX s_keyauth_credentials ON t_keyauth_credentials (sequence);
CREATE INDEX x_keyauth_credentials_f_consumer_cascade ON e_keyauth_credentials (f_consumer_cascade);
CREATE UNIQUE INDEX x_keyauth_credentials_u_key ON e_keyauth_credentials (u_key);
CREATE INDEX s_plugins ON t_plugins (sequence);
CREATE UNIQUE INDEX x_plugins_u_instance_name ON e_plugins (u_instance_name);
CREATE INDEX x_plugins_f_route_cascade ON e_plugins (f_route_cascade);
CREATE INDEX x_plugins_f_service_cascade ON e_plugins (f_service_cascade);
CREATE INDEX x_plugins_f_consumer_cascade ON e_plugins (f_consumer_cascade);
CREATE INDEX x_plugins_f_consumer_group_cascade ON e_plugins (f_consumer_group_cascade);
CREATE UNIQUE INDEX x_plugins_k_cache_key ON e_plugins (k_cache_key);
CREATE UNIQUE INDEX x_names_u_name ON e_names (u_name);
CREATE INDEX i_history ON history_item (revision);
CREATE TRIGGER h_update_certificates AFTER UPDATE OF text ON e_certificates WHEN OLD.text <> NEW.text BEGIN
        INSERT INTO history_item
        SELECT revision, 'certificates', NEW.id, NEW.sequence, 'changed', OLD.text FROM meta; END;
CREATE TRIGGER h_insert_certificates AFTER INSERT ON e_certificates BEGIN INSERT INTO history_item
        SELECT revision, 'certificates', NEW.id, NEW.sequence, 'created', NULL FROM meta; END;
CREATE TRIGGER h_delete_certificates AFTER DELETE ON e_certificates BEGIN INSERT INTO history_item
        SELECT revision, 'certificates', OLD.id, OLD.sequence, 'deleted', OLD.text FROM meta; END;
CREATE TRIGGER h_update_snis AFTER UPDATE OF text ON e_snis WHEN OLD.text <> NEW.text BEGIN
        INSERT INTO history_item
        SELECT revision, 'snis', NEW.id, NEW.sequence, 'changed', OLD.text FROM meta; END;
CREATE TRIGGER h_insert_snis AFTER INSERT ON e_snis BEGIN INSERT INTO history_item
        SELECT revision, 'snis', NEW.id, NEW.sequence, 'created', NULL FROM meta; END;
CREATE TRIGGER h_delete_snis AFTER DELETE ON e_snis BEGIN INSERT INTO history_item
        SELECT revision, 'snis', OLD.id, OLD.sequence, 'deleted', OLD.text FROM meta; END;
CREATE TRIGGER h_update_ca_certificates AFTER UPDATE OF text ON e_ca_certificates WHEN OLD.text <> NEW.text BEGIN
        INSERT INTO history_item
        SELECT revision, 'ca_certificates', NEW.id, NEW.sequence, 'changed', OLD.text FROM meta; END;
CREATE TRIGGER h_insert_ca_certificates AFTER INSERT ON e_ca_certificates BEGIN INSERT INTO history_item
        SELECT revision, 'ca_certificates', NEW.id, NEW.sequence, 'created', NULL FROM meta; END;
CREATE TRIGGER h_delete_ca_certificates AFTER DELETE ON e_ca_certificates BEGIN INSERT INTO history_item
        SELECT revision, 'ca_certificates', OLD.id, OLD.sequence, 'deleted', OLD.text FROM meta; END;
CREATE TRIGGER h_update_services AFTER UPDATE OF text ON e_services WHEN OLD.text <> NEW.text BEGIN
        INSERT INTO history_item
        SELECT revision, 'services', NEW.id, NEW.sequence, 'changed', OLD.text FROM meta; END;
CREATE TRIGGER h_insert_services AFTER INSERT ON e_services BEGIN INSERT INTO history_item
        SELECT revision, 'services', NEW.id, NEW.sequence, 'created', NULL FROM meta; END;
CREATE TRIGGER h_delete_services AFTER DELETE ON e_services BEGIN INSERT INTO history_item
        SELECT revision, 'services', OLD.id, OLD.sequence, 'deleted', OLD.text FROM meta; END;
CREATE TRIGGER h_update_upstreams AFTER UPDATE OF text ON e_upstreams WHEN OLD.text <> NEW.text BEGIN
        INSERT INTO history_item
        SELECT revision, 'upstreams', NEW.id, NEW.sequence, 'changed', OLD.text FROM meta; END;
CREATE TRIGGER h_insert_upstreams AFTER INSERT ON e_upstreams BEGIN INSERT INTO history_item
        SELECT revision, 'upstreams', NEW.id, NEW.sequence, 'created', NULL FROM meta; END;
CREATE TRIGGER h_delete_upstreams AFTER DELETE ON e_upstreams BEGIN INSERT INTO history_item
        SELECT revision, 'upstreams', OLD.id, OLD.sequence, 'deleted', OLD.text FROM meta; END;
CREATE TRIGGER h_update_consumer_groups AFTER UPDATE OF text ON e_consumer_groups WHEN OLD.text <> NEW.text BEGIN
        INSERT INTO history_item
        SELECT revision, 'consumer_groups', NEW.id, NEW.sequence, 'changed', OLD.text FROM meta; END;
CREATE TRIGGER h_insert_consumer_groups AFTER INSERT ON e_consumer_groups BEGIN INSERT INTO history_item
        SELECT revision, 'consumer_groups', NEW.id, NEW.sequence, 'created', NULL FROM meta; END;
CREATE TRIGGER h_delete_consumer_groups AFTER DELETE ON e_consumer_groups BEGIN INSERT INTO history_item
        SELECT revision, 'consumer_groups', OLD.id, OLD.sequence, 'deleted', OLD.text FROM meta; END;
CREATE TRIGGER h_update_consumers AFTER UPDATE OF text ON e_consumers WHEN OLD.text <> NEW.text BEGIN
        INSERT INTO history_item
        SELECT revision, 'consumers', NEW.id, NEW.sequence, 'changed', OLD.text FROM meta; END;
CREATE TRIGGER h_insert_consumers AFTER INSERT ON e_consumers BEGIN INSERT INTO history_item
        SELECT revision, 'consumers', NEW.id, NEW.sequence, 'created', NULL FROM meta; END;
CREATE TRIGGER h_delete_consumers AFTER DELETE ON e_consumers BEGIN INSERT INTO history_item
        SELECT revision, 'consumers', OLD.id, OLD.sequence, 'deleted', OLD.text FROM meta; END;
CREATE TRIGGER h_update_consumer_group_consumers AFTER UPDATE OF text ON e_consumer_group_consumers WHEN OLD.text <> NEW.text BEGIN
        INSERT INTO history_item
        SELECT revision, 'consumer_group_consumers', NEW.id, NEW.sequence, 'changed', OLD.text FROM meta; END;
CREATE TRIGGER h_insert_consumer_group_consumers AFTER INSERT ON e_consumer_group_consumers BEGIN INSERT INTO history_item
        SELECT revision, 'consumer_group_consumers', NEW.id, NEW.sequence, 'created', NULL FROM meta; END;
CREATE TRIGGER h_delete_consumer_group_consumers AFTER DELETE ON e_consumer_group_consumers BEGIN INSERT INTO history_item
        SELECT revision, 'consumer_group_consumers', OLD.id, OLD.sequence, 'deleted', OLD.text FROM meta; END;
CREATE TRIGGER h_update_routes AFTER UPDATE OF text ON e_routes WHEN OLD.text <> NEW.text BEGIN
        INSERT INTO history_item
        SELECT revision, 'routes', NEW.id, NEW.sequence, 'changed', OLD.text FROM meta; END;
CREATE TRIGGER h_insert_routes AFTER INSERT ON e_routes BEGIN INSERT INTO history_item
        SELECT revision, 'routes', NEW.id, NEW.sequence, 'created', NULL FROM meta; END;
CREATE TRIGGER h_delete_routes AFTER DELETE ON e_routes BEGIN INSERT INTO history_item
        SELECT revision, 'routes', OLD.id, OLD.sequence, 'deleted', OLD.text FROM meta; END;
CREATE TRIGGER h_update_targets AFTER UPDATE OF text ON e_targets WHEN OLD.text <> NEW.text BEGIN
        INSERT INTO history_item
        SELECT revision, 'targets', NEW.id, NEW.sequence, 'changed', OLD.text FROM meta; END;
CREATE TRIGGER h_insert_targets AFTER INSERT ON e_targets BEGIN INSERT INTO history_item
        SELECT revision, 'targets', NEW.id, NEW.sequence, 'created', NULL FROM meta; END;
CREATE TRIGGER h_delete_targets AFTER DELETE ON e_targets BEGIN INSERT INTO history_item
        SELECT revision, 'targets', OLD.id, OLD.sequence, 'deleted', OLD.text FROM meta; END;
CREATE TRIGGER h_update_vaults AFTER UPDATE OF text ON e_vaults WHEN OLD.text <> NEW.text BEGIN
        INSERT INTO history_item
        SELECT revision, 'vaults', NEW.id, NEW.sequence, 'changed', OLD.text FROM meta; END;
CREATE TRIGGER h_insert_vaults AFTER INSERT ON e_vaults BEGIN INSERT INTO history_item
        SELECT revision, 'vaults', NEW.id, NEW.sequence, 'created', NULL FROM meta; END;
CREATE TRIGGER h_delete_vaults AFTER DELETE ON e_vaults BEGIN INSERT INTO history_item
        SELECT revision, 'vaults', OLD.id, OLD.sequence, 'deleted', OLD.text FROM meta; END;
CREATE TRIGGER h_update_keyauth_credentials AFTER UPDATE OF text ON e_keyauth_credentials WHEN OLD.text <> NEW.text BEGIN
        INSERT INTO history_item
        SELECT revision, 'keyauth_credentials', NEW.id, NEW.sequence, 'changed', OLD.text FROM meta; END;
CREATE TRIGGER h_insert_keyauth_credentials AFTER INSERT ON e_keyauth_credentials BEGIN INSERT INTO history_item
        SELECT revision, 'keyauth_credentials', NEW.id, NEW.sequence, 'created', NULL FROM meta; END;
CREATE TRIGGER h_delete_keyauth_credentials AFTER DELETE ON e_keyauth_credentials BEGIN INSERT INTO history_item
        SELECT revision, 'keyauth_credentials', OLD.id, OLD.sequence, 'deleted', OLD.text FROM meta; END;
CREATE TRIGGER h_update_plugins AFTER UPDATE OF text ON e_plugins WHEN OLD.text <> NEW.text BEGIN
        INSERT INTO history_item
        SELECT revision, 'plugins', NEW.id, NEW.sequence, 'changed', OLD.text FROM meta; END;
CREATE TRIGGER h_insert_plugins AFTER INSERT ON e_plugins BEGIN INSERT INTO history_item
        SELECT revision, 'plugins', NEW.id, NEW.sequence, 'created', NULL FROM meta; END;
CREATE TRIGGER h_delete_plugins AFTER DELETE ON e_plugins BEGIN INSERT INTO history_item
        SELECT revision, 'plugins', OLD.id, OLD.sequence, 'deleted', OLD.text FROM meta; END;
COMMIT;
