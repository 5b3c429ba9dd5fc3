"""Files such as users of Kong and decK have, by what is special about each."""

from __future__ import annotations

S = "6f2c1a30-0000-4000-8000-0000000000"
"""With two more digits an id."""

DUMP = f"""\
_format_version: '3.0'
_transform: false
services:
- client_certificate: ~
  host: h.internal
  id: {S}01
  name: shop
  ca_certificates: ~
  connect_timeout: 60000
  created_at: 1700000000
  updated_at: 1700000001
  enabled: true
  path: /v1
  port: 80
  protocol: http
  read_timeout: 60000
  retries: 5
  tags: []
  tls_verify: ~
  tls_verify_depth: ~
  write_timeout: 60000
- client_certificate: ~
  host: old.internal
  id: {S}02
  name: old
  ca_certificates: ~
  enabled: false
  port: 80
  protocol: http
  path: ~
parameters:
- created_at: 1700000000
  key: cluster_id
  value: {S}99
upstreams:
- algorithm: round-robin
  client_certificate: ~
  hash_fallback: none
  hash_fallback_header: ~
  hash_on: none
  hash_on_cookie_path: /
  healthchecks:
    active:
      concurrency: 10
      headers: ~
      healthy: {{http_statuses: [200, 302], interval: 0, successes: 0}}
      http_path: /
      https_sni: ~
      https_verify_certificate: true
      timeout: 1
      type: http
      unhealthy:
        http_failures: 0
        http_statuses: [429, 404, 500, 501, 502, 503, 504, 505]
        interval: 0
        tcp_failures: 0
        timeouts: 0
    passive:
      healthy: {{http_statuses: [200, 201], successes: 0}}
      type: http
      unhealthy: {{http_failures: 0, http_statuses: [429], tcp_failures: 0, timeouts: 0}}
    threshold: 0
  host_header: ~
  id: {S}03
  name: h.internal
  slots: 10000
  tags: ~
  use_srv_name: false
targets:
- created_at: 1700000000.123
  updated_at: 1700000000.123
  id: {S}04
  tags: ~
  target: 127.0.0.1:9
  upstream: {S}03
  weight: 100
consumers:
- created_at: 1700000000
  custom_id: ~
  id: {S}05
  tags: ~
  username: alice
routes:
- destinations: ~
  headers: ~
  hosts: ~
  https_redirect_status_code: 426
  id: {S}06
  methods: ~
  name: orders
  path_handling: v0
  paths: [/orders]
  preserve_host: false
  protocols: [http, https]
  regex_priority: 0
  request_buffering: true
  response_buffering: true
  service: {S}01
  snis: ~
  sources: ~
  strip_path: true
  tags: ~
acls:
- consumer: {S}05
  created_at: 1700000000
  group: admins
  id: {S}07
  tags: ~
basicauth_credentials:
- consumer: {S}05
  created_at: 1700000000
  id: {S}08
  password: f0b8dfbb1bb3bb8d2d4b5ab5c0c7ed2e1a1f6d3b
  tags: ~
  username: alice
hmacauth_credentials:
- {{consumer: {S}05, id: {S}09, secret: s, username: alice, tags: ~}}
jwt_secrets:
- {{algorithm: HS256, consumer: {S}05, id: {S}10, key: k, rsa_public_key: ~, secret: s, tags: ~}}
keyauth_credentials:
- {{consumer: {S}05, id: {S}11, key: alices-key, tags: ~, ttl: ~}}
plugins:
- config:
    anonymous: ~
    hide_credentials: false
    key_in_body: false
    key_in_header: true
    key_in_query: true
    key_names: [apikey]
    realm: ~
    run_on_preflight: true
  consumer: ~
  consumer_group: ~
  created_at: 1700000000
  enabled: true
  id: {S}12
  instance_name: ~
  name: key-auth
  protocols: [grpc, grpcs, http, https, ws, wss]
  route: {S}06
  service: ~
  tags: ~
- config:
    day: ~
    error_code: 429
    error_message: API rate limit exceeded
    fault_tolerant: true
    header_name: ~
    hide_client_headers: false
    hour: ~
    limit_by: consumer
    minute: 5
    month: ~
    path: ~
    policy: local
    redis:
      database: 0
      host: ~
      password: ~
      port: 6379
      server_name: ~
      ssl: false
      ssl_verify: false
      timeout: 2000
      username: ~
    redis_database: 0
    redis_host: ~
    redis_password: ~
    redis_port: 6379
    redis_server_name: ~
    redis_ssl: false
    redis_ssl_verify: false
    redis_timeout: 2000
    redis_username: ~
    second: ~
    sync_rate: -1
    year: ~
  consumer: {S}05
  enabled: true
  id: {S}13
  name: rate-limiting
  protocols: [grpc, grpcs, http, https]
  route: ~
  service: ~
- {{config: {{http_endpoint: 'http://zipkin:9411'}}, enabled: false, id: {S}14, name: zipkin}}
vaults: []
filter_chains: []
"""
"""Of `kong config db_export`: every kind of Kong 3.9.3 that this version has."""

ONE = """
services:
- name: one
  url: http://127.0.0.1:9
  routes: [{name: one, paths: [/one]}]
"""


def plugins(text: str) -> str:
    """A file with a route, and plugins for all requests."""
    return f'_format_version: "3.0"\n{ONE}plugins:\n{text}'


FILES = {
    "db_export": DUMP,
    "decK's dump with tags": f'_format_version: "3.0"\n_info: {{select_tags: [team-a]}}\n{ONE}',
    "decK's defaults": '_format_version: "3.0"\n_info:\n  defaults:\n    service: {retries: 1}\n'
    f"    route: {{strip_path: false, protocols: [http]}}\n    upstream: {{slots: 100}}\n{ONE}",
    "decK's parts of plugins": '_format_version: "3.0"\n_plugin_configs:\n  strict: {minute: 5}\n'
    f"{ONE}  plugins: [{{name: rate-limiting, _config: strict, config: {{policy: local}}}}]\n",
    "Konnect's dump": '_format_version: "3.0"\n_konnect: {control_plane_name: default}\n'
    f"_info: {{select_tags: [konnect], defaults: {{}}}}\n{ONE}",
    "Konnect's older dump": f'_format_version: "3.0"\n_konnect: {{runtime_group_name: a}}\n{ONE}',
    "a workspace": f'_format_version: "3.0"\n_workspace: team\n{ONE}',
    "the default workspace": f'_format_version: "1.1"\n_workspace: default\n{ONE}',
    "remarks": f'_format_version: "2.1"\n_transform: true\n_comment: a\n_ignore: [b]\n{ONE}',
    "a policy that is switched off": plugins(
        "- {name: rate-limiting, enabled: false, config: {minute: 5, policy: redis, "
        "redis_host: r}}\n"
    ),
    "plugins that are switched off": plugins(
        "- {name: openid-connect, enabled: false, config: {issuer: 'https://a'}}\n"
        "- {name: request-transformer-advanced, enabled: false}\n"
    ),
    "protocols of Enterprise": plugins(
        "- {name: cors, protocols: [grpc, grpcs, http, https, ws, wss], config: {origins: ['*']}}\n"
    ),
    "equal keys": f'_format_version: "3.0"\n_format_version: "3.0"\n{ONE}',
    "equal lists": '_format_version: "3.0"\nservices:\n- name: one\n  host: h\n  tags: [a, b]\n'
    "  routes: [{paths: [/a]}]\n  tags: [a, b]\n",
    "JSON with equal keys": '{"_format_version": "3.0", "services": [{"name": "a", "host": "h", '
    '"name": "a"}]}',
    "cors for all": plugins(
        "- name: cors\n  config: {origins: ['*'], methods: [GET, POST], headers: [Accept], "
        "exposed_headers: [X-A], credentials: true, max_age: 3600, preflight_continue: false}\n"
    ),
    "keys and groups": f'_format_version: "2.1"\n{ONE}  plugins:\n'
    "  - {name: key-auth, config: {key_names: [apikey], hide_credentials: true}}\n"
    "  - {name: acl, config: {allow: [admins], hide_groups_header: true}}\n"
    "consumers:\n- username: a\n  keyauth_credentials: [{key: k}]\n  acls: [{group: admins}]\n",
    "tokens": f'_format_version: "3.0"\n{ONE}  plugins:\n'
    "  - {name: jwt, config: {key_claim_name: iss, claims_to_verify: [exp]}}\n"
    "consumers:\n- {username: a, jwt_secrets: [{key: k, secret: s, algorithm: HS256}]}\n",
    "passwords": f'_format_version: "3.0"\n{ONE}  plugins: [{{name: basic-auth}}]\n'
    "consumers: [{username: a, basicauth_credentials: [{username: a, password: b}]}]\n",
    "metrics": plugins(
        "- name: prometheus\n  config: {status_code_metrics: true, latency_metrics: true, "
        "bandwidth_metrics: true, upstream_health_metrics: true, per_consumer: false}\n"
    ),
    "a log on standard output": plugins(
        "- {name: file-log, config: {path: /dev/stdout, reopen: false}}\n"
    ),
    "ids of requests": plugins(
        "- {name: correlation-id, config: {header_name: X-Request-ID, generator: uuid#counter, "
        "echo_downstream: true}}\n"
    ),
    "sizes": plugins(
        "- {name: request-size-limiting, config: {allowed_payload_size: 8, size_unit: megabytes}}\n"
    ),
    "addresses": plugins("- {name: ip-restriction, config: {allow: [10.0.0.0/8, 127.0.0.1]}}\n"),
    "bots and an end": plugins(
        "- {name: bot-detection, config: {deny: [curl]}}\n"
        "- {name: request-termination, service: one, config: {status_code: 503, message: later}}\n"
    ),
    "an upstream with its targets": '_format_version: "3.0"\n'
    "upstreams:\n- name: u\n  targets: [{target: '127.0.0.1:9', weight: 100}]\n"
    "services:\n- {name: a, host: u, routes: [{paths: ['~/a/\\d+$'], methods: [GET]}]}\n",
    "everything at the top": '_format_version: "3.0"\nservices: [{name: a, url: "http://h"}]\n'
    "routes: [{name: r, service: {name: a}, hosts: [a.example.com], protocols: [https]}]\n"
    "plugins: [{name: key-auth, route: r}, {name: cors, service: {name: a}}]\n",
    "groups of consumers": f'_format_version: "3.0"\n{ONE}'
    "consumer_groups:\n- name: gold\n  plugins: [{name: rate-limiting, config: {minute: 9}}]\n"
    "consumers: [{username: a, groups: [{name: gold}]}]\n",
}
