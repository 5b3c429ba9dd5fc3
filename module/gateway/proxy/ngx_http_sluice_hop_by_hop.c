
/*
 * Removes what the lines of Connection name (RFC 9110, 7.6.1), before any
 * plugin, so that it cannot remove what a plugin adds.  The list of headers is
 * walked twice, however many names and lines there are, and once more for a
 * request that may switch to WebSocket, which keeps its Upgrade.
 */


#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_header_options.h"
#include "ngx_http_sluice_hop_by_hop.h"
#include "ngx_http_sluice_upgrade.h"
#include "refusal.h"


typedef struct {
    ngx_table_elt_t                   *kept;      /* or NULL */
    ngx_http_sluice_header_options_t   names;
} ngx_http_sluice_hop_by_hop_dropped_t;


static ngx_uint_t ngx_http_sluice_hop_by_hop_drops(ngx_table_elt_t *elt,
    void *data);


ngx_int_t
ngx_http_sluice_hop_by_hop_apply(ngx_http_request_t *r, uint32_t *fault)
{
    ngx_uint_t                            i, lines;
    ngx_list_part_t                      *part;
    ngx_table_elt_t                      *elt;
    ngx_http_sluice_hop_by_hop_dropped_t  dropped;

    dropped.kept = NULL;
    dropped.names.count = 0;
    dropped.names.lengths = 0;
    lines = 0;

    for (part = &r->headers_in.headers.part; part; part = part->next) {

        elt = part->elts;
        lines += part->nelts;

        if (lines > SLUICE_REFUSAL_LINES) {
            *fault = SLUICE_FAULT_LINES;
            return NGX_DECLINED;
        }

        for (i = 0; i < part->nelts; i++) {

            if (elt[i].key.len != sizeof("connection") - 1
                || ngx_memcmp(elt[i].lowcase_key, "connection",
                              sizeof("connection") - 1)
                   != 0)
            {
                continue;
            }

            if (ngx_http_sluice_header_options_add(&dropped.names,
                                                     &elt[i].value)
                != NGX_OK)
            {
                *fault = SLUICE_FAULT_OPTIONS;
                return NGX_DECLINED;
            }
        }
    }

    if (ngx_http_sluice_header_options_has(&dropped.names,
                                         (u_char *) "upgrade", 7)
        && ngx_http_sluice_upgrade_accept(r))
    {
        dropped.kept = r->headers_in.upgrade;
    }

    return dropped.names.count
           ? ngx_http_sluice_header_clear_all(r,
                                              ngx_http_sluice_hop_by_hop_drops,
                                              &dropped)
           : NGX_OK;
}


static ngx_uint_t
ngx_http_sluice_hop_by_hop_drops(ngx_table_elt_t *elt, void *data)
{
    ngx_http_sluice_hop_by_hop_dropped_t  *dropped = data;

    return elt != dropped->kept
           && ngx_http_sluice_header_options_has(&dropped->names,
                                                 elt->key.data, elt->key.len);
}
