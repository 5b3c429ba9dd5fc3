
/*
 * The plugin request-termination in nginx: sluice_request_termination.c
 * decides, and this says what an echo has of the process.
 */


#include "ngx_http_sluice_decide.h"
#include "ngx_http_sluice_header.h"
#include "ngx_sluice_images.h"
#include "sluice_request_termination.h"

#include <ngx_md5.h>


#define NGX_HTTP_SLUICE_REQUEST_TERMINATION_ID  36      /* bytes of a UUID */


typedef struct {
    sluice_request_termination_own_t   plain;  /* the first: decide() reads */
    ngx_http_request_t                *request;
    ngx_http_sluice_ctx_t             *ctx;
} ngx_http_sluice_request_termination_own_t;


static ngx_int_t ngx_http_sluice_request_termination_init(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_sluice_request_termination_access(
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx, void *conf);
static int ngx_http_sluice_request_termination_line(
    sluice_request_termination_own_t *plain, uint32_t index,
    sluice_core_text_t *name, sluice_core_text_t *value);
static int ngx_http_sluice_request_termination_entity(
    sluice_request_termination_own_t *plain, int kind,
    sluice_core_text_t *text);


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_request_termination = {
    .name = ngx_string("request-termination"),
    .decision = &sluice_request_termination,
    .access = ngx_http_sluice_request_termination_access,
    .init_worker = ngx_http_sluice_request_termination_init
};


static u_char  ngx_http_sluice_request_termination_id[
                                      NGX_HTTP_SLUICE_REQUEST_TERMINATION_ID];


/* The id that the Admin API shows (gateway/admin/node.lua). */

static ngx_int_t
ngx_http_sluice_request_termination_init(ngx_cycle_t *cycle)
{
    size_t      length;
    u_char     *p, digest[16];
    ngx_md5_t   md5;
    ngx_uint_t  i;

    static const u_char  namespace[16] = {
        0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1,
        0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8
    };

    length = cycle->prefix.len;

    if (length > 1 && cycle->prefix.data[length - 1] == '/') {
        length--;
    }

    ngx_md5_init(&md5);
    ngx_md5_update(&md5, namespace, sizeof(namespace));
    ngx_md5_update(&md5, "sluice://", sizeof("sluice://") - 1);
    ngx_md5_update(&md5, cycle->hostname.data, cycle->hostname.len);
    ngx_md5_update(&md5, cycle->prefix.data, length);
    ngx_md5_final(digest, &md5);

    digest[6] = (u_char) ((digest[6] & 0x0f) | 0x30);
    digest[8] = (u_char) ((digest[8] & 0x3f) | 0x80);

    p = ngx_http_sluice_request_termination_id;

    for (i = 0; i < 16; i++) {

        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *p++ = '-';
        }

        p = ngx_hex_dump(p, &digest[i], 1);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_request_termination_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *conf)
{
    ngx_http_sluice_request_termination_own_t  own;

    if (ngx_connection_local_sockaddr(r->connection, NULL, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    own.plain.line = ngx_http_sluice_request_termination_line;
    own.plain.entity = ngx_http_sluice_request_termination_entity;
    own.plain.node_id.data = (char *) ngx_http_sluice_request_termination_id;
    own.plain.node_id.length = NGX_HTTP_SLUICE_REQUEST_TERMINATION_ID;
    own.plain.hostname.data = (const char *) ngx_cycle->hostname.data;
    own.plain.hostname.length = (uint32_t) ngx_cycle->hostname.len;
    own.plain.pid = (uint32_t) ngx_pid;
    own.plain.port = ngx_inet_get_port(r->connection->local_sockaddr);
    own.request = r;
    own.ctx = ctx;

    return ngx_http_sluice_decide(&sluice_request_termination, r, ctx, conf,
                                  &own);
}


static int
ngx_http_sluice_request_termination_line(
    sluice_request_termination_own_t *plain, uint32_t index,
    sluice_core_text_t *name, sluice_core_text_t *value)
{
    ngx_table_elt_t                            *h;
    ngx_http_sluice_header_walk_t               walk;
    ngx_http_sluice_request_termination_own_t  *own;

    own = (ngx_http_sluice_request_termination_own_t *) plain;

    ngx_http_sluice_header_each(h, walk, &own->request->headers_in.headers) {

        if (index-- == 0) {
            name->data = (const char *) h->key.data;
            name->length = (uint32_t) h->key.len;
            value->data = (const char *) h->value.data;
            value->length = (uint32_t) h->value.len;

            return SLUICE_FACT_OK;
        }
    }

    return SLUICE_FACT_NONE;
}


/* What is published now may have another in its slot. */

static int
ngx_http_sluice_request_termination_entity(
    sluice_request_termination_own_t *plain, int kind,
    sluice_core_text_t *text)
{
    uint32_t                                    slot, generation;
    sluice_core_found_t                         found;
    sluice_core_entity_t                        head;
    ngx_http_sluice_request_termination_own_t  *own;

    own = (ngx_http_sluice_request_termination_own_t *) plain;

    slot = own->ctx->service_slot;
    generation = own->ctx->service_generation;

    if (kind == SLUICE_CORE_ROUTE) {
        slot = own->ctx->route;
        generation = own->ctx->route_generation;
    }

    if (slot == SLUICE_CORE_NOBODY
        || sluice_images_by_slot(kind, slot, &found) != SLUICE_CORE_OK)
    {
        return SLUICE_FACT_NONE;
    }

    sluice_core_head(&found, &head);

    if (head.generation != generation) {
        return SLUICE_FACT_NONE;
    }

    *text = sluice_core_body(&found);

    return SLUICE_FACT_OK;
}
