
/*
 * What plugins in Lua change of a request's log entry, in the order in which
 * they have: kong.log.set_serialize_value (gateway/kit/log/serialize.lua).
 */


#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_log.h"


/* Of one request: each change looks through the entry. */

#define NGX_HTTP_SLUICE_LOG_EDITS  1000
#define NGX_HTTP_SLUICE_LOG_EDITS_SIZE  (4 * 1024 * 1024)  /* bytes */


typedef struct ngx_http_sluice_log_edit_s  ngx_http_sluice_log_edit_t;

struct ngx_http_sluice_log_edit_s {
    ngx_http_sluice_log_edit_t   *next;
    sluice_json_edit_t            edit;
};


struct ngx_http_sluice_log_edits_s {
    ngx_http_sluice_log_edit_t   *first;
    ngx_http_sluice_log_edit_t  **last;
    ngx_uint_t                    nelts;
    size_t                        size;         /* of all texts */
};


static char *ngx_http_sluice_log_edit_copy(ngx_pool_t *pool, const char *text,
    size_t length);


/*
 * Notes a change; its texts are copied.  NGX_OK; NGX_DECLINED: there are as
 * many as may be; NGX_ERROR: no memory.
 */

int
sluice_log_edit(ngx_http_request_t *r, const sluice_json_edit_t *edit)
{
    size_t                        size;
    ngx_pool_t                   *pool;
    ngx_http_sluice_ctx_t        *ctx;
    ngx_http_sluice_log_edit_t   *one;
    ngx_http_sluice_log_edits_t  *edits;

    ctx = ngx_http_sluice_ctx_make(r);
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    pool = r->main->pool;
    edits = ctx->log_edits;

    if (edits == NULL) {
        edits = ngx_pcalloc(pool, sizeof(ngx_http_sluice_log_edits_t));
        if (edits == NULL) {
            return NGX_ERROR;
        }

        edits->last = &edits->first;
        ctx->log_edits = edits;
    }

    size = edits->size + edit->key_length + edit->value_length;

    if (edits->nelts == NGX_HTTP_SLUICE_LOG_EDITS
        || size > NGX_HTTP_SLUICE_LOG_EDITS_SIZE)
    {
        return NGX_DECLINED;
    }

    one = ngx_palloc(pool, sizeof(ngx_http_sluice_log_edit_t));
    if (one == NULL) {
        return NGX_ERROR;
    }

    one->next = NULL;
    one->edit = *edit;
    one->edit.key = ngx_http_sluice_log_edit_copy(pool, edit->key,
                                                  edit->key_length);

    if (edit->value) {
        one->edit.value = ngx_http_sluice_log_edit_copy(pool, edit->value,
                                                        edit->value_length);
    }

    if (one->edit.key == NULL || (edit->value && one->edit.value == NULL)) {
        return NGX_ERROR;
    }

    *edits->last = one;
    edits->last = &one->next;
    edits->nelts++;
    edits->size = size;

    return NGX_OK;
}


/* An entry is UTF-8, and what plugins write need not be. */

static char *
ngx_http_sluice_log_edit_copy(ngx_pool_t *pool, const char *text,
    size_t length)
{
    char    *copy;
    size_t   i;

    copy = ngx_pnalloc(pool, length + 1);
    if (copy == NULL) {
        return NULL;
    }

    ngx_memcpy(copy, text, length);

    if (!sluice_json_is_utf8(copy, length)) {

        for (i = 0; i < length; i++) {
            if ((u_char) copy[i] >= 0x80) {
                copy[i] = '?';
            }
        }
    }

    return copy;
}


void
ngx_http_sluice_log_edits(ngx_http_sluice_log_t *log, ngx_http_request_t *r)
{
    size_t                       used, wanted;
    ngx_str_t                    key, name;
    ngx_http_sluice_ctx_t       *ctx;
    ngx_http_sluice_log_edit_t  *one;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL || ctx->log_edits == NULL) {
        return;
    }

    for (one = ctx->log_edits->first; one; one = one->next) {

        used = log->pos - log->start;
        wanted = sluice_json_edit((char *) log->start, used,
                                  log->end - log->start, &one->edit);

        if (wanted > (size_t) (log->end - log->start)) {

            if (!ngx_http_sluice_log_grow(log, wanted - used)) {
                return;
            }

            wanted = sluice_json_edit((char *) log->start, used,
                                      log->end - log->start, &one->edit);
        }

        log->pos = log->start + wanted;

        if (one->edit.refused) {
            key.data = (u_char *) one->edit.key;
            key.len = one->edit.key_length;
            name.data = key.data;
            name.len = one->edit.refused;

            ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                          "sluice: the log entry is without the value of "
                          "\"%V\": \"%V\" is no table", &key, &name);
        }
    }
}
