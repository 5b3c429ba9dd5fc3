-- A store as Sluice wrote it before groups had plugins, services certificates, and consumers their history
-- (f94023c), from what sqlite3's .dump says of it, and the numbers in its head. What is alike for kinds
-- stands once, with @ for the kind.
PRAGMA application_id=1399616873;
PRAGMA user_version=1;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
-- Each kind: certificates snis ca_certificates services upstreams consumer_groups consumers consumer_group_consumers routes targets vaults keyauth_credentials plugins names
CREATE TABLE e_@ (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB);
-- End
-- Each kind: certificates snis ca_certificates services upstreams consumer_groups consumers routes targets vaults keyauth_credentials plugins
CREATE TABLE t_@ (
        tag TEXT NOT NULL,
        sequence INTEGER NOT NULL
            REFERENCES e_@ (sequence) ON DELETE CASCADE ON UPDATE CASCADE,
        PRIMARY KEY (tag, sequence)) WITHOUT ROWID;
-- End
ALTER TABLE e_snis ADD COLUMN u_name TEXT;
ALTER TABLE e_snis ADD COLUMN f_certificate_cascade TEXT REFERENCES e_certificates (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE e_ca_certificates ADD COLUMN u_cert_digest TEXT;
ALTER TABLE e_services ADD COLUMN u_name TEXT;
ALTER TABLE e_services ADD COLUMN f_client_certificate_restrict TEXT REFERENCES e_certificates (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE e_upstreams ADD COLUMN u_name TEXT;
ALTER TABLE e_upstreams ADD COLUMN f_client_certificate_restrict TEXT REFERENCES e_certificates (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE e_consumer_groups ADD COLUMN u_name TEXT;
ALTER TABLE e_consumers ADD COLUMN u_username TEXT;
ALTER TABLE e_consumers ADD COLUMN u_custom_id TEXT;
ALTER TABLE e_consumer_group_consumers ADD COLUMN f_consumer_group_cascade TEXT REFERENCES e_consumer_groups (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE e_consumer_group_consumers ADD COLUMN f_consumer_cascade TEXT REFERENCES e_consumers (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE e_consumer_group_consumers ADD COLUMN k_cache_key TEXT;
ALTER TABLE e_routes ADD COLUMN u_name TEXT;
ALTER TABLE e_routes ADD COLUMN f_service_restrict TEXT REFERENCES e_services (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE e_targets ADD COLUMN f_upstream_cascade TEXT REFERENCES e_upstreams (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE e_targets ADD COLUMN n_target TEXT;
ALTER TABLE e_targets ADD COLUMN k_cache_key TEXT;
ALTER TABLE e_vaults ADD COLUMN u_prefix TEXT;
ALTER TABLE e_keyauth_credentials ADD COLUMN f_consumer_cascade TEXT REFERENCES e_consumers (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE e_keyauth_credentials ADD COLUMN u_key TEXT;
ALTER TABLE e_plugins ADD COLUMN u_instance_name TEXT;
ALTER TABLE e_plugins ADD COLUMN f_route_cascade TEXT REFERENCES e_routes (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE e_plugins ADD COLUMN f_service_cascade TEXT REFERENCES e_services (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE e_plugins ADD COLUMN f_consumer_cascade TEXT REFERENCES e_consumers (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE e_plugins ADD COLUMN f_consumer_group_cascade TEXT REFERENCES e_consumer_groups (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE e_plugins ADD COLUMN k_cache_key TEXT;
ALTER TABLE e_names ADD COLUMN u_name TEXT;
CREATE TABLE meta (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        uuid TEXT NOT NULL,
        revision INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        compacted INTEGER NOT NULL,
        is_backup INTEGER NOT NULL,
        origin TEXT,
        packed_as TEXT);
CREATE TABLE kind (
        name TEXT PRIMARY KEY,
        space TEXT NOT NULL,
        columns TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE space (
        name TEXT PRIMARY KEY,
        next_slot INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE gone (
        kind TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        id TEXT NOT NULL,
        revision INTEGER NOT NULL,
        released INTEGER NOT NULL,
        PRIMARY KEY (kind, slot, generation)) WITHOUT ROWID;
CREATE TABLE free_slot (
        space TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        PRIMARY KEY (space, slot)) WITHOUT ROWID;
CREATE TABLE history (
        revision INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        by TEXT);
CREATE TABLE history_item (
        revision INTEGER NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        sequence INTEGER NOT NULL,
        what TEXT NOT NULL,
        before TEXT);
CREATE TABLE history_reach (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        revision INTEGER NOT NULL);
INSERT INTO meta VALUES(1,'e34d6cdc-a9e1-4c66-884d-5207fdd94de4',10,9,0,0,NULL,'certificates 2 snis 2 ca_certificates 2 services 2 upstreams 2 consumer_groups 2 consumers 2 consumer_group_consumers 2 routes 2 targets 2 vaults 2 keyauth_credentials 2 plugins 2 key-auth=0.1.0 rate-limiting=0.1.0 names 2');
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
INSERT INTO gone VALUES('services',1,1,'e1d1a0cc-fd6c-4d89-8cdf-6e270ca52586',10,0);
INSERT INTO e_services VALUES(3,'36594a2c-da03-4db6-b3b9-4f45e2b8d7e2',0,1,3,1795389242.0,1795389242.0,'{"connect_timeout":60000,"enabled":true,"host":"pool","id":"36594a2c-da03-4db6-b3b9-4f45e2b8d7e2","name":"shop","path":"/api","port":80,"protocol":"http","read_timeout":60000,"retries":5,"tags":["a","b"],"write_timeout":60000,"created_at":1795389242,"updated_at":1795389242}',X'00000000000000000400000073686f7004000000706f6f6c040000002f6170690500500060ea000060ea000060ea0000','shop',NULL);
INSERT INTO e_upstreams VALUES(1,'2a981969-f038-4c67-9e44-7b7d859ac938',0,1,1,1795389242.0,1795389242.0,'{"algorithm":"round-robin","hash_fallback":"none","hash_on":"none","hash_on_cookie_path":"/","healthchecks":{"active":{"concurrency":10,"healthy":{"http_statuses":[200,302],"interval":0,"successes":0},"http_path":"/","https_verify_certificate":true,"timeout":1,"type":"http","unhealthy":{"http_failures":0,"http_statuses":[429,404,500,501,502,503,504,505],"interval":0,"tcp_failures":0,"timeouts":0}},"passive":{"healthy":{"http_statuses":[200,201,202,203,204,205,206,207,208,226,300,301,302,303,304,305,306,307,308],"successes":0},"type":"http","unhealthy":{"http_failures":0,"http_statuses":[429,500,503],"tcp_failures":0,"timeouts":0}},"threshold":0},"id":"2a981969-f038-4c67-9e44-7b7d859ac938","name":"pool","slots":10000,"use_srv_name":false,"created_at":1795389242,"updated_at":1795389242}',X'0000000004000000706f6f6cffffffff10270000','pool',NULL);
INSERT INTO e_consumers VALUES(6,'b4b110bd-e1b5-4de1-831a-517465acdd43',0,1,6,1795389242.0,1795389242.0,'{"custom_id":"1","id":"b4b110bd-e1b5-4de1-831a-517465acdd43","username":"alice","created_at":1795389242,"updated_at":1795389242}',X'0000000005000000616c6963650100000031','alice','1');
INSERT INTO e_routes VALUES(4,'3423ec67-03bd-45ff-b3c6-dc1221f69b6d',0,1,4,1795389242.0,1795389242.0,'{"hosts":["shop.example.com"],"https_redirect_status_code":426,"id":"3423ec67-03bd-45ff-b3c6-dc1221f69b6d","name":"orders","path_handling":"v0","paths":["/orders"],"preserve_host":false,"protocols":["http","https"],"regex_priority":0,"request_buffering":true,"response_buffering":true,"service":{"id":"36594a2c-da03-4db6-b3b9-4f45e2b8d7e2"},"strip_path":true,"tags":["b"],"created_at":1795389242,"updated_at":1795389242}',X'0000000001000000060000006f7264657273010000001000000073686f702e6578616d706c652e636f6d01000000070000002f6f7264657273000000000000000000000000','orders','36594a2c-da03-4db6-b3b9-4f45e2b8d7e2');
INSERT INTO e_targets VALUES(2,'53ff6709-6376-47e7-8531-ef73cbfd7f16',0,1,2,1795389242.6510000228,1795389242.6510000228,'{"id":"53ff6709-6376-47e7-8531-ef73cbfd7f16","target":"127.0.0.1:8080","upstream":{"id":"2a981969-f038-4c67-9e44-7b7d859ac938"},"weight":10,"created_at":1795389242.651,"updated_at":1795389242.651}',X'000000000e0000003132372e302e302e313a383038300a000000','2a981969-f038-4c67-9e44-7b7d859ac938','127.0.0.1:8080','36:2a981969-f038-4c67-9e44-7b7d859ac938,14:127.0.0.1:8080');
INSERT INTO e_keyauth_credentials VALUES(7,'731346ef-dce2-451b-a690-c82447c8f4d7',0,1,7,1795389242.0,NULL,'{"consumer":{"id":"b4b110bd-e1b5-4de1-831a-517465acdd43"},"id":"731346ef-dce2-451b-a690-c82447c8f4d7","key":"alices-key","created_at":1795389242}',X'000000000a000000616c696365732d6b6579','b4b110bd-e1b5-4de1-831a-517465acdd43','alices-key');
INSERT INTO e_plugins VALUES(8,'94ed2094-036b-43fc-b18c-57347532ddbb',0,1,8,1795389243.0,1795389243.0,'{"config":{"hide_credentials":false,"key_in_body":false,"key_in_header":true,"key_in_query":true,"key_names":["apikey"],"run_on_preflight":true},"enabled":true,"id":"94ed2094-036b-43fc-b18c-57347532ddbb","name":"key-auth","protocols":["grpc","grpcs","http","https"],"route":{"id":"3423ec67-03bd-45ff-b3c6-dc1221f69b6d"},"created_at":1795389243,"updated_at":1795389243}',X'00000000080000006b65792d617574681d00000016000000ffffffff030000004b657901000000060000006170696b6579',NULL,'3423ec67-03bd-45ff-b3c6-dc1221f69b6d',NULL,NULL,NULL,'8:key-auth,36:3423ec67-03bd-45ff-b3c6-dc1221f69b6d,-,-');
INSERT INTO e_plugins VALUES(9,'e3fcef03-7f43-4746-b26a-c7c2edc3edd9',1,1,9,1795389243.0,1795389243.0,'{"config":{"error_code":429,"error_message":"API rate limit exceeded","fault_tolerant":true,"hide_client_headers":false,"limit_by":"consumer","minute":100,"policy":"local","redis":{"cloud_authentication":{},"database":0,"port":6379,"ssl":false,"ssl_verify":false,"timeout":2000},"sync_rate":-1},"enabled":true,"id":"e3fcef03-7f43-4746-b26a-c7c2edc3edd9","name":"rate-limiting","protocols":["grpc","grpcs","http","https"],"created_at":1795389243,"updated_at":1795389243}',X'000000000d000000726174652d6c696d6974696e676b00000000000000000000000000000000005940000000000000000000000000000000000000000000000000000000000000000008000000636f6e73756d6572ffffffffffffffffad010000170000004150492072617465206c696d69742065786365656465640100000000000000',NULL,NULL,NULL,NULL,NULL,'13:rate-limiting,-,-,-');
INSERT INTO t_services VALUES('a',3);
INSERT INTO t_services VALUES('b',3);
INSERT INTO t_routes VALUES('b',4);
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
INSERT INTO history_reach VALUES(1,0);
-- Each kind: certificates snis ca_certificates services upstreams consumer_groups consumers consumer_group_consumers routes targets vaults keyauth_credentials plugins names
CREATE UNIQUE INDEX i_@ ON e_@ (id);
CREATE UNIQUE INDEX l_@ ON e_@ (slot);
CREATE INDEX r_@ ON e_@ (revision);
CREATE TRIGGER g_@ AFTER DELETE ON e_@ BEGIN
        INSERT INTO gone SELECT '@', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END;
-- End
-- Each kind: certificates snis ca_certificates services upstreams consumer_groups consumers routes targets vaults keyauth_credentials plugins
CREATE INDEX s_@ ON t_@ (sequence);
-- End
-- Each kind: certificates snis ca_certificates services upstreams consumer_groups consumers consumer_group_consumers routes targets vaults keyauth_credentials plugins
CREATE TRIGGER h_update_@ AFTER UPDATE OF text ON e_@ WHEN OLD.text <> NEW.text BEGIN
        INSERT INTO history_item
        SELECT revision, '@', NEW.id, NEW.sequence, 'changed', OLD.text FROM meta; END;
CREATE TRIGGER h_insert_@ AFTER INSERT ON e_@ BEGIN INSERT INTO history_item
        SELECT revision, '@', NEW.id, NEW.sequence, 'created', NULL FROM meta; END;
CREATE TRIGGER h_delete_@ AFTER DELETE ON e_@ BEGIN INSERT INTO history_item
        SELECT revision, '@', OLD.id, OLD.sequence, 'deleted', OLD.text FROM meta; END;
-- End
CREATE INDEX gone_revision ON gone (revision);
CREATE UNIQUE INDEX x_snis_u_name ON e_snis (u_name);
CREATE INDEX x_snis_f_certificate_cascade ON e_snis (f_certificate_cascade);
CREATE UNIQUE INDEX x_ca_certificates_u_cert_digest ON e_ca_certificates (u_cert_digest);
CREATE UNIQUE INDEX x_services_u_name ON e_services (u_name);
CREATE INDEX x_services_f_client_certificate_restrict ON e_services (f_client_certificate_restrict);
CREATE UNIQUE INDEX x_upstreams_u_name ON e_upstreams (u_name);
CREATE INDEX x_upstreams_f_client_certificate_restrict ON e_upstreams (f_client_certificate_restrict);
CREATE UNIQUE INDEX x_consumer_groups_u_name ON e_consumer_groups (u_name);
CREATE UNIQUE INDEX x_consumers_u_username ON e_consumers (u_username);
CREATE UNIQUE INDEX x_consumers_u_custom_id ON e_consumers (u_custom_id);
CREATE INDEX x_consumer_group_consumers_f_consumer_group_cascade ON e_consumer_group_consumers (f_consumer_group_cascade);
CREATE INDEX x_consumer_group_consumers_f_consumer_cascade ON e_consumer_group_consumers (f_consumer_cascade);
CREATE UNIQUE INDEX x_consumer_group_consumers_k_cache_key ON e_consumer_group_consumers (k_cache_key);
CREATE UNIQUE INDEX x_routes_u_name ON e_routes (u_name);
CREATE INDEX x_routes_f_service_restrict ON e_routes (f_service_restrict);
CREATE INDEX x_targets_f_upstream_cascade ON e_targets (f_upstream_cascade);
CREATE INDEX x_targets_n_target ON e_targets (n_target);
CREATE UNIQUE INDEX x_targets_k_cache_key ON e_targets (k_cache_key);
CREATE UNIQUE INDEX x_vaults_u_prefix ON e_vaults (u_prefix);
CREATE INDEX x_keyauth_credentials_f_consumer_cascade ON e_keyauth_credentials (f_consumer_cascade);
CREATE UNIQUE INDEX x_keyauth_credentials_u_key ON e_keyauth_credentials (u_key);
CREATE UNIQUE INDEX x_plugins_u_instance_name ON e_plugins (u_instance_name);
CREATE INDEX x_plugins_f_route_cascade ON e_plugins (f_route_cascade);
CREATE INDEX x_plugins_f_service_cascade ON e_plugins (f_service_cascade);
CREATE INDEX x_plugins_f_consumer_cascade ON e_plugins (f_consumer_cascade);
CREATE INDEX x_plugins_f_consumer_group_cascade ON e_plugins (f_consumer_group_cascade);
CREATE UNIQUE INDEX x_plugins_k_cache_key ON e_plugins (k_cache_key);
CREATE UNIQUE INDEX x_names_u_name ON e_names (u_name);
CREATE INDEX i_history ON history_item (revision);
COMMIT;
