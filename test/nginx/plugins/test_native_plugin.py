"""Plugins in C that are no part of Sluice: a folder each, built with SLUICE_PLUGIN_SOURCES, which
has two folders of them.

One has every callback, and state of each request; one is that of docs/plugin-walkthrough.md.
Long on purpose: one build for all of them, whose sources stand here.
"""

import json
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator

import pytest
import walkthrough
from slow_routes import slow_to_compile

from certificates import connect, get
from instance import optimise_less
from processes import ran
from sluice import ROOT, Gateway, proxying
from upstream import Upstream
from wire import wait_until

HANDLER = """
local packed = require("sluice.ffi.packed")

return {
    VERSION = "1",
    PRIORITY = 2000,
    native = true,
    pack = function(config)
        local out = packed.new()
        out:text(config.word)
        return out:bytes()
    end,
}
"""

ALL_PHASES_HANDLER = HANDLER.replace(
    "        out:text(config.word)",
    """        if require("plugins.all-phases.words")(config.word) > 0 then
            error("config.word: it has spaces", 0)
        end
        out:text(config.word)""",
)

# What its Lua calls of its C: beside nginx's processes the command, too, which checks files.
WORDS = """
local abi = require("sluice.ffi.abi")

abi.declare_plugin("all-phases", 0)

local lib = abi.library()

return function(word)
    return lib.sluice_all_phases_spaces(word, #word)
end
"""

WORDS_HEADER = """
#include <stddef.h>

/* FFI */

int sluice_all_phases_spaces(const char *word, size_t length);

/* FFI end */
"""

WORDS_SOURCE = """
#include "all_phases_words.h"


int
sluice_all_phases_spaces(const char *word, size_t length)
{
    int     count;
    size_t  i;

    for (count = 0, i = 0; i < length; i++) {
        count += word[i] == ' ';
    }

    return count;
}
"""

SCHEMA = """
return { name = "all-phases", fields = { { config = { type = "record", fields = {
    { word = { type = "string", required = true, default = "none" } },
} } } } }
"""

SOURCE = r"""
#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_plugin.h"
#include "packed.h"


typedef struct {
    ngx_str_t   word;
    ngx_uint_t  calls;
    ngx_uint_t  bytes;
} ngx_http_sluice_all_phases_t;


typedef struct {
    sluice_core_text_t  word;
} ngx_http_sluice_all_phases_packed_t;


extern ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_all_phases;


static const sluice_packed_field_t  ngx_http_sluice_all_phases_fields[] = {
    sluice_packed_field(TEXT, ngx_http_sluice_all_phases_packed_t, word),
    sluice_packed_end
};


static void *
ngx_http_sluice_all_phases_allocate(void *data, size_t size)
{
    return ngx_pcalloc(data, size);
}


static void *
ngx_http_sluice_all_phases_compile(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding, ngx_str_t *words)
{
    ngx_str_t                            *word;
    sluice_core_text_t                    bytes;
    sluice_packed_memory_t                memory;
    ngx_http_sluice_all_phases_packed_t   packed;

    bytes.data = (const char *) binding->packed.data;
    bytes.length = (uint32_t) binding->packed.len;
    memory.allocate = ngx_http_sluice_all_phases_allocate;
    memory.data = pool;

    if (sluice_packed_read(ngx_http_sluice_all_phases_fields, &bytes, &memory,
                           &packed)
        != SLUICE_CORE_OK)
    {
        ngx_str_set(words, "its bytes are of another version");
        return NULL;
    }

    word = ngx_palloc(pool, sizeof(ngx_str_t));
    if (word == NULL) {
        return NULL;
    }

    word->len = packed.word.length;
    word->data = (u_char *) packed.word.data;

    return word;
}


static ngx_int_t
ngx_http_sluice_all_phases_init_worker(ngx_cycle_t *cycle)
{
    ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0, "all-phases: a worker");

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_all_phases_certificate(ngx_connection_t *c,
    ngx_str_t *server_name, void *conf)
{
    ngx_str_t  *word = conf;

    ngx_log_error(NGX_LOG_NOTICE, c->log, 0, "all-phases: %V for \"%V\"", word,
                  server_name);

    return server_name->len == sizeof("refused.example") - 1
           && ngx_memcmp(server_name->data, "refused.example",
                         server_name->len) == 0
           ? NGX_ERROR : NGX_OK;
}


static ngx_int_t
ngx_http_sluice_all_phases_rewrite(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *conf,
    ngx_http_sluice_refusal_t *refusal)
{
    ngx_http_sluice_all_phases_t  *state;

    state = ngx_http_sluice_plugin_state(ctx,
                                         &ngx_http_sluice_plugin_all_phases);

    if (state == NULL) {
        state = ngx_pcalloc(r->pool, sizeof(ngx_http_sluice_all_phases_t));
    }

    if (state == NULL
        || ngx_http_sluice_plugin_set_state(r, ctx,
                                            &ngx_http_sluice_plugin_all_phases,
                                            state)
           != NGX_OK)
    {
        return ngx_http_sluice_refusal(refusal,
                                       NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    state->calls++;

    if (r->method == NGX_HTTP_DELETE) {
        (void) ngx_http_sluice_refusal(refusal, NGX_HTTP_FORBIDDEN);
        ngx_str_set(&refusal->message, "stopped before it was routed");

        return NGX_DECLINED;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_all_phases_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *conf)
{
    ngx_str_t                     *word = conf;
    ngx_http_sluice_all_phases_t  *state;

    state = ngx_http_sluice_plugin_state(ctx,
                                         &ngx_http_sluice_plugin_all_phases);

    /* no global configuration has made it */

    if (state == NULL) {
        state = ngx_pcalloc(r->pool, sizeof(ngx_http_sluice_all_phases_t));

        if (state == NULL
            || ngx_http_sluice_plugin_set_state(r, ctx,
                                            &ngx_http_sluice_plugin_all_phases,
                                                state)
               != NGX_OK)
        {
            return ngx_http_sluice_answer(r, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                          NULL);
        }
    }

    state->calls++;
    state->word.len = word->len;
    state->word.data = ngx_pstrdup(r->pool, word);

    return state->word.data ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_sluice_all_phases_header_filter(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data)
{
    ngx_str_t                      name, value;
    ngx_http_sluice_all_phases_t  *state = data;

    state->calls++;

    ngx_str_set(&name, "X-All-Phases");

    value.data = ngx_pnalloc(r->pool, state->word.len + NGX_INT_T_LEN + 1);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    value.len = ngx_sprintf(value.data, "%V:%ui", &state->word, state->calls)
                - value.data;

    ngx_http_clear_content_length(r);

    return ngx_http_sluice_answer_push(r, &name, &value) ? NGX_OK : NGX_ERROR;
}


/* An exclamation mark behind the last byte. */

static ngx_int_t
ngx_http_sluice_all_phases_body_filter(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data, ngx_chain_t **in)
{
    ngx_buf_t                     *b;
    ngx_chain_t                   *cl, *mark;
    ngx_http_sluice_all_phases_t  *state = data;

    for (cl = *in; cl; cl = cl->next) {
        state->bytes += ngx_buf_size(cl->buf);

        if (!cl->buf->last_buf) {
            continue;
        }

        b = ngx_calloc_buf(r->pool);
        mark = ngx_alloc_chain_link(r->pool);

        if (b == NULL || mark == NULL) {
            return NGX_ERROR;
        }

        b->pos = (u_char *) "!";
        b->last = b->pos + 1;
        b->memory = 1;
        b->last_buf = 1;

        cl->buf->last_buf = 0;
        cl->buf->sync = ngx_buf_size(cl->buf) == 0;

        mark->buf = b;
        mark->next = cl->next;
        cl->next = mark;

        break;
    }

    return NGX_OK;
}


static void
ngx_http_sluice_all_phases_log(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data)
{
    ngx_http_sluice_all_phases_t  *state = data;

    ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0,
                  "all-phases: \"%V\" of %ui calls and %ui bytes, status %ui",
                  &state->word, state->calls, state->bytes,
                  r->headers_out.status);
}


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_all_phases = {
    .name = ngx_string("all-phases"),
    .compile = ngx_http_sluice_all_phases_compile,
    .access = ngx_http_sluice_all_phases_access,
    .init_worker = ngx_http_sluice_all_phases_init_worker,
    .certificate = ngx_http_sluice_all_phases_certificate,
    .rewrite = ngx_http_sluice_all_phases_rewrite,
    .header_filter = ngx_http_sluice_all_phases_header_filter,
    .body_filter = ngx_http_sluice_all_phases_body_filter,
    .log = ngx_http_sluice_all_phases_log
};
"""

# One that cannot begin.
NEVER = r"""
#include "ngx_http_sluice_plugin.h"


static ngx_int_t
ngx_http_sluice_never_init_worker(ngx_cycle_t *cycle)
{
    return NGX_ERROR;
}


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_never = {
    .name = ngx_string("never"),
    .init_worker = ngx_http_sluice_never_init_worker
};
"""

LUA = """
return {
    VERSION = "1", PRIORITY = 1000,
    schema = { name = "beside", fields = { { config = { type = "record", fields = {} } } } },
    access = function() ngx.req.set_header("X-Beside", "yes") end,
    header_filter = function() ngx.header["X-Beside"] = "yes" end,
}
"""

# Where it is built; again only when something has changed.
CHECKOUT = ROOT / "build" / "native-plugin"
OTHERS = CHECKOUT / "others" / "plugins"
# A second folder of such, that has one of them.
MORE = CHECKOUT / "more" / "plugins"


class Built(Gateway):
    """A gateway of the checkout with the plugin."""

    program = CHECKOUT / "bin" / "sluice"


@pytest.fixture(scope="module", autouse=True)
def _build() -> None:
    """The sources as they are, and two folders beside them."""
    for name in (
        "bin",
        "cli",
        "compat",
        "gateway",
        "lib",
        "module",
        "plugins",
        "scripts",
        "others",
        "more",
    ):
        shutil.rmtree(CHECKOUT / name, ignore_errors=True)
        if name not in ("others", "more"):
            shutil.copytree(ROOT / name, CHECKOUT / name)
    shutil.copytree(ROOT / "build" / "core", CHECKOUT / "build" / "core", dirs_exist_ok=True)
    for name, source, where in (("all-phases", SOURCE, OTHERS), ("never", NEVER, MORE)):
        folder = where / name
        folder.mkdir(parents=True)
        (folder / "handler.lua").write_text(HANDLER)
        (folder / "schema.lua").write_text(SCHEMA.replace("all-phases", name))
        (folder / f"ngx_http_sluice_{name.replace('-', '_')}.c").write_text(source)
    (OTHERS / "all-phases" / "handler.lua").write_text(ALL_PHASES_HANDLER)
    (OTHERS / "all-phases" / "words.lua").write_text(WORDS)
    (OTHERS / "all-phases" / "all_phases_words.h").write_text(WORDS_HEADER)
    (OTHERS / "all-phases" / "sluice_all_phases_words.c").write_text(WORDS_SOURCE)
    for path, text in walkthrough.files().items():
        if path.startswith("plugins/"):
            (OTHERS.parent / path).parent.mkdir(exist_ok=True)
            (OTHERS.parent / path).write_text(text)
    # What somebody has left there is none of them, and is not compiled.
    for stray in (OTHERS / "all-phases.bak", OTHERS / "all-phases" / "plugins" / "all-phases"):
        stray.mkdir(parents=True)
        (stray / "handler.lua").write_text("this is no Lua")
        (stray / "ngx_http_sluice_all_phases.c").write_text("this is no C")
        (stray / "sluice_all_phases.c").write_text("this is no C")
    optimise_less(CHECKOUT)
    # The build says what the Lua was not written against.
    command = [CHECKOUT / "scripts" / "build-module"]
    environment = os.environ | {"SLUICE_PLUGIN_SOURCES": f"{OTHERS}:{MORE}"}
    refused = ran(command, env=environment)
    assert refused.returncode == 1
    said = re.search(r'then have .* say (abi\.declare_plugin\("all-phases", \d+\))', refused.stderr)
    assert said is not None, refused.stderr
    text = WORDS.replace('abi.declare_plugin("all-phases", 0)', said.group(1))
    (OTHERS / "all-phases" / "words.lua").write_text(text)
    subprocess.run(command, env=environment, check=True)


def has(gateway: Built, *names: str) -> None:
    """Has it load these plugins beside the bundled ones."""
    paths = [f"{folder.parent}/?.lua" for folder in (OTHERS, MORE)]
    paths.append(gateway.settings.get("lua_package_path", ""))
    gateway.settings |= {"lua_package_path": ";".join(paths), "plugins": ["bundled", *names]}


@pytest.fixture
def gateway(upstream: Upstream) -> Iterator[Built]:
    """With a configuration for all requests, another of a route, and a plugin in Lua beside it."""
    config = proxying(upstream)
    service = config["services"][0]
    service["routes"].append(
        {
            "name": "own",
            "paths": ["/own"],
            "plugins": [{"name": "all-phases", "config": {"word": "own"}}],
        }
    )
    service["routes"].append(
        {"name": "mixed", "paths": ["/mixed"], "plugins": [{"name": "beside"}]}
    )
    config["plugins"] = [{"name": "all-phases", "config": {"word": "global"}}]
    running = Built(
        config,
        tls="ssl",
        plugins={"beside": LUA},
    )
    has(running, "all-phases", "beside")
    with running:
        yield running


def says(gateway: Built, words: str, count: int = 1) -> None:
    """Waits until the error log has these words so often."""
    wait_until(lambda: gateway.error_log().count(words) == count, words)


def test_it_has_every_phase_and_state_of_its_own(gateway: Built) -> None:
    says(gateway, "all-phases: a worker")
    for path, word in (("/", "global"), ("/own", "own"), ("/mixed", "global")):
        reply = gateway.ask(path)
        assert reply.status == 200
        # Three of them have counted: rewrite, access and this one.
        assert reply.headers.get("X-All-Phases") == f"{word}:3"
        assert reply.body.endswith(b"}!")
        length = len(reply.body) - 1
        says(gateway, f'all-phases: "{word}" of 3 calls and {length} bytes, status 200')
    assert reply.headers.get("X-Beside") == "yes"
    assert ["X-Beside", "yes"] in json.loads(reply.body[:-1])["headers"]


def test_its_lua_calls_its_c(gateway: Built) -> None:
    spaced = gateway.file.read_text().replace('"global"', '"all over"')
    gateway.file.write_text(spaced)
    refused = gateway.command("check", str(gateway.file))
    assert refused.returncode != 0
    assert "config.word: it has spaces" in refused.stdout + refused.stderr


def test_it_refuses_before_routing(gateway: Built, upstream: Upstream) -> None:
    reply = gateway.ask("/nowhere", method="DELETE")
    assert reply.status == 403
    assert b"stopped before it was routed" in reply.body
    assert reply.headers.get("X-All-Phases") == ":2"
    says(gateway, 'all-phases: "" of 2 calls')
    assert upstream.requests == []


def test_it_sees_handshakes(gateway: Built) -> None:
    with connect(gateway.tls_port, "a.example") as wrapped:
        assert b"X-All-Phases: global:3" in get(wrapped)
    says(gateway, 'all-phases: global for "a.example"')
    gateway.expect_log('no handshake for the server name "refused.example"')
    with pytest.raises(ssl.SSLError), connect(gateway.tls_port, "refused.example"):
        pass
    assert gateway.ask("/").status == 200


def test_it_follows_its_configuration(gateway: Built) -> None:
    assert gateway.ask("/own").headers.get("X-All-Phases") == "own:3"
    gateway.reload(gateway.file.read_text().replace('"own"', '"other"'))
    says(gateway, "all-phases: a worker", 2)
    assert gateway.ask("/own").headers.get("X-All-Phases") == "other:3"


@pytest.mark.parametrize("waits", ["match", "plugins"])
def test_its_rewrite_runs_once_however_many_turns_there_are(upstream: Upstream, waits: str) -> None:
    # So many that the worker has not compiled all before it is asked.
    config = slow_to_compile(upstream, 48) | {"plugins": [{"name": "all-phases"}]}
    if waits == "plugins":
        # Compiled before a request is routed.
        routes = config["services"][0].pop("routes")
        origins = [path[1:] for route in routes for path in route["paths"]][:200]
        config["plugins"].append({"name": "cors", "config": {"origins": origins}})
    running = Built(config)
    has(running, "all-phases")
    with running:
        reply = running.ask("/1/none")
    assert reply.status == 404
    # Rewrite and the header filter: without a route there is no access phase.
    assert reply.headers.get("X-All-Phases") == ":2"


def test_one_that_cannot_begin_keeps_nobody_from_starting(upstream: Upstream) -> None:
    config = proxying(upstream)
    routes = config["services"][0]["routes"]
    routes.append({"name": "never", "paths": ["/never"], "plugins": [{"name": "never"}]})
    config["plugins"] = [{"name": "all-phases"}, {"name": "beside"}]
    running = Built(config, plugins={"beside": LUA})
    has(running, "never", "all-phases", "beside")
    running.expect_log("plugin 'never' failed in init_worker")
    running.expect_log("plugin 'never' is not loaded")
    with running:
        reply = running.ask("/")
        assert (reply.status, reply.headers.get("X-Beside")) == (200, "yes")
        assert reply.headers.get("X-All-Phases") == "none:3"
        assert running.ask("/never").status == 500
        assert len(upstream.requests) == 1


def test_it_touches_one_folder_only() -> None:
    """Nothing of Sluice says its name; the table that the build made does."""
    done = ran(
        ["grep", "-rlE", "all[-_]phases", "cli", "gateway", "lib", "module", "plugins", "scripts"],
        cwd=CHECKOUT,
    )
    assert done.stdout == ""
    table = CHECKOUT / "build" / "module" / "objs" / "ngx_http_sluice_plugins.c"
    assert "&ngx_http_sluice_plugin_all_phases," in table.read_text()
    assert "&ngx_http_sluice_plugin_never," in table.read_text()


def test_the_plugin_of_the_walkthrough(upstream: Upstream) -> None:
    """As the page says: others' methods are answered 405, with those that pass."""
    plugin = {"name": "method-limit", "config": {"methods": ["GET", "HEAD"]}}
    running = Built(proxying(upstream) | {"plugins": [plugin]})
    has(running, "method-limit")
    with running:
        for method, status in (("GET", 200), ("HEAD", 200), ("DELETE", 405)):
            reply = running.ask("/", method)
            assert reply.status == status
            assert reply.headers.all("Allow") == (["GET, HEAD"] if status == 405 else [])
    assert [each.method for each in upstream.requests] == ["GET", "HEAD"]
