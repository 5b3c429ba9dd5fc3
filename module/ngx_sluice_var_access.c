
/*
 * Variables by number, for Lua: what ngx_http_lua_ffi_var_get() and _set() of
 * the Lua module do, without the search for the name.
 *
 * No value is kept from one read to the next, and nothing is allocated but by
 * a variable's own handler.
 */


#include "ngx_sluice_var.h"


static ngx_inline ngx_str_t ngx_sluice_var_value(ngx_http_request_t *r,
    ngx_sluice_var_t *v);
static ngx_inline ngx_uint_t ngx_sluice_var_equal(const u_char *a,
    const u_char *b, size_t len);
static ngx_inline u_char *ngx_sluice_var_alloc(ngx_pool_t *pool, size_t size);


/* Of this process; set before it serves a request. */

static ngx_sluice_var_t  *ngx_sluice_vars;
static ngx_uint_t         ngx_sluice_vars_n;


void
ngx_sluice_var_publish(ngx_array_t *vars)
{
    ngx_sluice_vars = vars->elts;
    ngx_sluice_vars_n = vars->nelts;
}


/*
 * The length of the value, which is put into *data and lives no longer than
 * until Lua has copied it; or NGX_SLUICE_VAR_SAME if it equals the one that
 * the caller has as a Lua string.  Comparing costs a fifth of making a string.
 */

int
sluice_var_get(ngx_http_request_t *r, unsigned number, const u_char *last,
    size_t last_length, u_char **data)
{
    ngx_str_t  value;

    /* a request that the Lua module made up, for a timer or a handshake */

    if (r->connection->fd == (ngx_socket_t) -1
        || number >= ngx_sluice_vars_n)
    {
        return NGX_SLUICE_VAR_FAILED;
    }

    value = ngx_sluice_var_value(r, &ngx_sluice_vars[number]);

    if (value.len == last_length
        && ngx_sluice_var_equal(value.data, last, last_length))
    {
        return NGX_SLUICE_VAR_SAME;
    }

    *data = value.data;

    return (int) value.len;
}


/*
 * The same of several, each with its own result; NGX_SLUICE_VAR_FAILED if
 * none could be read.
 */

int
sluice_var_get_bulk(ngx_http_request_t *r, int count,
    sluice_var_value_t *values)
{
    int  i;

    if (r->connection->fd == (ngx_socket_t) -1) {
        return NGX_SLUICE_VAR_FAILED;
    }

    for (i = 0; i < count; i++) {
        values[i].length = sluice_var_get(r, values[i].number, values[i].last,
                                          values[i].last_length,
                                          &values[i].data);

        if (values[i].length == NGX_SLUICE_VAR_FAILED) {
            return NGX_SLUICE_VAR_FAILED;
        }
    }

    return NGX_OK;
}


/* The two kinds that are read most, then the others. */

static ngx_inline ngx_str_t
ngx_sluice_var_value(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    ngx_str_t                   value, *string;
    ngx_http_variable_value_t  *vv;

    if (v->string) {
        string = (ngx_str_t *) ((char *) r + v->string);

        if (string->len) {
            return *string;
        }

    } else if (v->flags & NGX_HTTP_VAR_INDEXED) {
        vv = &r->variables[v->index];

        if (vv->valid && !vv->not_found && !vv->no_cacheable) {
            value.len = vv->len;
            value.data = vv->data;

            return value;
        }
    }

    return v->read(r, v);
}


/* In words of eight bytes that may overlap. */

static ngx_inline ngx_uint_t
ngx_sluice_var_equal(const u_char *a, const u_char *b, size_t len)
{
    uint32_t  a4, b4, a4_end, b4_end;
    uint64_t  a8, b8;
    size_t    i;

    if (len > 32) {
        return ngx_memcmp(a, b, len) == 0;
    }

    if (len < 4) {
        for (i = 0; i < len; i++) {
            if (a[i] != b[i]) {
                return 0;
            }
        }

        return 1;
    }

    if (len < 8) {
        memcpy(&a4, a, 4);
        memcpy(&b4, b, 4);
        memcpy(&a4_end, a + len - 4, 4);
        memcpy(&b4_end, b + len - 4, 4);

        return a4 == b4 && a4_end == b4_end;
    }

    for (i = 0; i + 8 < len; i += 8) {
        memcpy(&a8, a + i, 8);
        memcpy(&b8, b + i, 8);

        if (a8 != b8) {
            return 0;
        }
    }

    memcpy(&a8, a + len - 8, 8);
    memcpy(&b8, b + len - 8, 8);

    return a8 == b8;
}


/* NULL is nil. */

int
sluice_var_set(ngx_http_request_t *r, unsigned number, const u_char *data,
    size_t length)
{
    u_char                     *p;
    ngx_sluice_var_t           *v;
    ngx_http_variable_value_t   value, *vv;

    if (r->connection->fd == (ngx_socket_t) -1
        || number >= ngx_sluice_vars_n)
    {
        return NGX_SLUICE_VAR_FAILED;
    }

    v = &ngx_sluice_vars[number];

    if (!(v->flags & NGX_HTTP_VAR_CHANGEABLE)) {
        return NGX_SLUICE_VAR_FAILED;
    }

    if (v->set_handler) {
        ngx_memzero(&value, sizeof(ngx_http_variable_value_t));
        vv = &value;

    } else if (v->flags & NGX_HTTP_VAR_INDEXED) {
        vv = &r->variables[v->index];

    } else {
        return NGX_SLUICE_VAR_FAILED;
    }

    p = NULL;

    if (data) {
        p = ngx_sluice_var_alloc(r->pool, length);
        if (p == NULL) {
            return NGX_SLUICE_VAR_FAILED;
        }

        ngx_memcpy(p, data, length);
    }

    vv->len = length;
    vv->valid = (p != NULL);
    vv->no_cacheable = 0;
    vv->not_found = (p == NULL);
    vv->data = p;

    if (v->set_handler) {
        v->set_handler(r, vv, v->set_data);
    }

    return NGX_OK;
}


/* ngx_pnalloc(), without the calls where there is room. */

static ngx_inline u_char *
ngx_sluice_var_alloc(ngx_pool_t *pool, size_t size)
{
    u_char      *p;
    ngx_pool_t  *current;

    current = pool->current;
    p = current->d.last;

    if (size <= pool->max && (size_t) (current->d.end - p) >= size) {
        current->d.last = p + size;
        return p;
    }

    return ngx_pnalloc(pool, size);
}
