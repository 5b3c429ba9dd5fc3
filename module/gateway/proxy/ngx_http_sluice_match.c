
/*
 * From a request of nginx to a route of the image: the semantics are those of
 * docs/router.md.
 *
 * host     nginx's $host: lower case, without port
 * port     the digits behind the Host header's last colon, else the listener's
 * sni      what the client named in its handshake; not the Host header
 * headers  all lines whose name differs in case and in "-" against "_" only,
 *          since a client must not hide one behind others
 */


#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_match.h"
#include "ngx_http_sluice_patterns.h"
#include "ngx_http_sluice_tls.h"


#define NGX_HTTP_SLUICE_MATCH_NAMES    4      /* of headers, that are kept */


/* What the request has of a header. */

typedef struct {
    const char          *name;                /* of the image */
    uint32_t             length;
    uint32_t             count;
    ngx_str_t           *lines[SLUICE_CORE_LINES_MAX];
} ngx_http_sluice_match_header_t;


typedef struct {
    ngx_http_request_t              *request;
    ngx_uint_t                       too_many;
    ngx_uint_t                       count;   /* of names so far */
    ngx_http_sluice_match_header_t   headers[NGX_HTTP_SLUICE_MATCH_NAMES];
} ngx_http_sluice_match_ctx_t;


static void ngx_http_sluice_match_begin(sluice_core_request_t *request,
    const u_char *path, size_t length);
static void ngx_http_sluice_match_host(ngx_http_request_t *r,
    sluice_core_text_t *host);
static int32_t ngx_http_sluice_match_port(ngx_http_request_t *r);
static void ngx_http_sluice_match_sni(ngx_http_request_t *r,
    sluice_core_request_t *request);
static int ngx_http_sluice_match_line(void *data, const char *name,
    uint32_t length, uint32_t index, sluice_core_text_t *value);
static ngx_http_sluice_match_header_t *ngx_http_sluice_match_find(
    ngx_http_sluice_match_ctx_t *ctx, const char *name, uint32_t length);
static ngx_uint_t ngx_http_sluice_match_same(ngx_str_t *sent,
    const char *name, uint32_t length);


/*
 * Finds the route of a request with this path, normalised, in the view of this
 * turn of the event loop.
 *
 * SLUICE_CORE_OK; _NONE: no route; _LIMIT, _PATTERN, _MEMORY: nobody knows
 * whether it is the route's that match names, answer 500; _AGAIN: ask again in
 * another turn; _LARGE: a header that routes look at has more than 32 lines,
 * answer 400.
 */

int
sluice_match_request(ngx_http_request_t *r, const sluice_core_view_t *view,
    const u_char *path, size_t length, sluice_images_match_t *match)
{
    int                            rc;
    uint32_t                       needs;
    sluice_core_match_t            found;
    sluice_core_request_t          request;
    ngx_http_sluice_match_ctx_t    ctx;

    ngx_memzero(match, sizeof(sluice_images_match_t));

    needs = sluice_core_needs(view);

    ngx_http_sluice_match_begin(&request, path, length);

    if (needs & SLUICE_CORE_NEEDS_HOST) {
        ngx_http_sluice_match_host(r, &request.host);
    }

    if (needs & SLUICE_CORE_NEEDS_PORT) {
        request.port = ngx_http_sluice_match_port(r);
    }

    if (needs & SLUICE_CORE_NEEDS_METHOD) {
        request.method.data = (const char *) r->method_name.data;
        request.method.length = (uint32_t) r->method_name.len;
    }

    if (needs & SLUICE_CORE_NEEDS_SNI) {
        ngx_http_sluice_match_sni(r, &request);
    }

    ctx.too_many = 0;

    if (needs & SLUICE_CORE_NEEDS_HEADERS) {
        ctx.request = r;
        ctx.count = 0;
        request.header = ngx_http_sluice_match_line;
        request.data = &ctx;
    }

    rc = sluice_core_match(view, &request, ngx_http_sluice_patterns(), &found);

    if (ctx.too_many) {
        return SLUICE_CORE_LARGE;
    }

    match->epoch = sluice_images_epoch();
    match->revision = found.revision;
    match->slot = found.slot;
    match->generation = found.generation;
    match->service = found.service;
    match->prefix = found.prefix;
    match->reason = found.reason;
    match->route = found.route;

    return rc;
}


/* Field by field: gcc clears what is larger by an instruction that is slow. */

static void
ngx_http_sluice_match_begin(sluice_core_request_t *request, const u_char *path,
    size_t length)
{
    request->method.data = NULL;
    request->method.length = 0;
    request->host.data = NULL;
    request->host.length = 0;
    request->path.data = (const char *) path;
    request->path.length = (uint32_t) length;
    request->headers = NULL;
    request->headers_count = 0;
    request->port = -1;
    request->header = NULL;
    request->data = NULL;
    request->sni.data = NULL;
    request->sni.length = 0;
    request->is_tls = 0;
}


static void
ngx_http_sluice_match_host(ngx_http_request_t *r, sluice_core_text_t *host)
{
    ngx_str_t                 *name;
    ngx_http_core_srv_conf_t  *cscf;

    name = &r->headers_in.server;

    if (name->len == 0) {
        cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
        name = &cscf->server_name;
    }

    host->data = (const char *) name->data;
    host->length = (uint32_t) name->len;
}


/* -1 for one that no listener has, and of a UNIX socket. */

static int32_t
ngx_http_sluice_match_port(ngx_http_request_t *r)
{
    u_char     *p, *end;
    int32_t     port;
    ngx_str_t  *host;

    if (r->headers_in.host) {
        host = &r->headers_in.host->value;
        end = host->data + host->len;

        for (p = end; p > host->data && p[-1] >= '0' && p[-1] <= '9'; p--) {
            /* void */
        }

        if (p > host->data && p < end && p[-1] == ':') {

            for (port = 0; p < end && port <= 65535; p++) {
                port = port * 10 + (*p - '0');
            }

            return port <= 65535 ? port : -1;
        }
    }

    if (ngx_connection_local_sockaddr(r->connection, NULL, 0) != NGX_OK) {
        return -1;
    }

    port = ngx_inet_get_port(r->connection->local_sockaddr);

    return port ? port : -1;
}


static void
ngx_http_sluice_match_sni(ngx_http_request_t *r,
    sluice_core_request_t *request)
{
    ngx_str_t  name;

    if (r->connection->ssl == NULL) {
        return;
    }

    ngx_http_sluice_tls_name(r->connection, &name);

    request->is_tls = 1;
    request->sni.data = (const char *) name.data;
    request->sni.length = (uint32_t) name.len;
}


static int
ngx_http_sluice_match_line(void *data, const char *name, uint32_t length,
    uint32_t index, sluice_core_text_t *value)
{
    ngx_http_sluice_match_header_t  *header;

    header = ngx_http_sluice_match_find(data, name, length);

    if (index >= header->count) {
        return 0;
    }

    value->data = (const char *) header->lines[index]->data;
    value->length = (uint32_t) header->lines[index]->len;

    return 1;
}


/* Looks at the request once a name, unless routes look at many. */

static ngx_http_sluice_match_header_t *
ngx_http_sluice_match_find(ngx_http_sluice_match_ctx_t *ctx, const char *name,
    uint32_t length)
{
    ngx_uint_t                       i;
    ngx_table_elt_t                 *elt;
    ngx_http_sluice_header_walk_t    walk;
    ngx_http_sluice_match_header_t  *header;

    for (i = 0; i < ngx_min(ctx->count, NGX_HTTP_SLUICE_MATCH_NAMES); i++) {
        header = &ctx->headers[i];

        if (header->length == length
            && ngx_memcmp(header->name, name, length) == 0)
        {
            return header;
        }
    }

    header = &ctx->headers[ctx->count++ % NGX_HTTP_SLUICE_MATCH_NAMES];
    header->name = name;
    header->length = length;
    header->count = 0;

    ngx_http_sluice_header_each(elt, walk, &ctx->request->headers_in.headers) {

        if (!ngx_http_sluice_match_same(&elt->key, name, length)) {
            continue;
        }

        if (header->count == SLUICE_CORE_LINES_MAX) {
            ctx->too_many = 1;
            return header;
        }

        header->lines[header->count++] = &elt->value;
    }

    return header;
}


static ngx_uint_t
ngx_http_sluice_match_same(ngx_str_t *sent, const char *name, uint32_t length)
{
    u_char    c;
    uint32_t  i;

    if (sent->len != length) {
        return 0;
    }

    for (i = 0; i < length; i++) {
        c = sent->data[i] == '_' ? '-' : ngx_tolower(sent->data[i]);

        if (c != (u_char) name[i]) {
            return 0;
        }
    }

    return 1;
}
