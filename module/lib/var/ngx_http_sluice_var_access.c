
/*
 * Variables by number, for Lua: what ngx_http_lua_ffi_var_get() and _set() of
 * the Lua module do, without the search for the name.
 *
 * No value is kept from one read to the next, and nothing is allocated but by
 * a variable's own handler.
 */


#include "ngx_http_sluice_var.h"


/* Up to here bytes are compared and copied without a call. */
#define NGX_HTTP_SLUICE_VAR_SHORT  32


static int ngx_http_sluice_var_read(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v,
    const u_char *last, size_t last_length, u_char **data);
static ngx_inline int ngx_http_sluice_var_answer(ngx_str_t value,
    const u_char *last, size_t last_length, u_char **data);
static int ngx_http_sluice_var_answer_long(ngx_str_t value, const u_char *last,
    u_char **data);
static int ngx_http_sluice_var_write(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v, const u_char *data, size_t length);
static ngx_inline int ngx_http_sluice_var_assign(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v, u_char *data, size_t length);
static int ngx_http_sluice_var_call_set_handler(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v, u_char *data, size_t length);
static ngx_inline void ngx_http_sluice_var_fill(ngx_http_variable_value_t *vv,
    u_char *data, size_t length);
static ngx_inline ngx_uint_t ngx_http_sluice_var_equal(const u_char *a,
    const u_char *b, size_t len);
static ngx_inline ngx_uint_t ngx_http_sluice_var_equal_words(const u_char *a,
    const u_char *b, size_t len, size_t word);
static ngx_inline void ngx_http_sluice_var_copy(u_char *to, const u_char *from,
    size_t len);


/* Of this process; set before it serves a request. */

static ngx_http_sluice_var_t  *ngx_http_sluice_vars;
static ngx_uint_t              ngx_http_sluice_vars_n;


void
ngx_http_sluice_var_publish(ngx_array_t *vars)
{
    ngx_http_sluice_vars = vars->elts;
    ngx_http_sluice_vars_n = vars->nelts;
}


/*
 * The length of the value, which is put into *data and lives no longer than
 * until Lua has copied it; or NGX_HTTP_SLUICE_VAR_SAME if it equals the one
 * that the caller has as a Lua string.  Comparing costs a fifth of making a
 * string.
 */

int
sluice_var_get(ngx_http_request_t *r, unsigned number, const u_char *last,
    size_t last_length, u_char **data)
{
    ngx_str_t                   value, *string;
    ngx_http_sluice_var_t      *v;
    ngx_http_variable_value_t  *vv;

    /* a request that the Lua module made up, for a timer or a handshake */

    if (r->connection->fd == (ngx_socket_t) -1
        || number >= ngx_http_sluice_vars_n)
    {
        return NGX_HTTP_SLUICE_VAR_FAILED;
    }

    v = &ngx_http_sluice_vars[number];

    /* the two kinds that are read most, without a call; then the others */

    if (v->string) {
        string = (ngx_str_t *) ((char *) r + v->string);

        if (string->len) {
            return ngx_http_sluice_var_answer(*string, last, last_length,
                                              data);
        }

    } else if (v->indexed) {
        vv = &r->variables[v->index];

        if (vv->valid && !vv->not_found && !vv->no_cacheable) {
            value.len = vv->len;
            value.data = vv->data;

            return ngx_http_sluice_var_answer(value, last, last_length, data);
        }
    }

    return ngx_http_sluice_var_read(r, v, last, last_length, data);
}


/* On its own: what needs no call needs no registers for one, either. */

static int __attribute__ ((noinline))
ngx_http_sluice_var_read(ngx_http_request_t *r, ngx_http_sluice_var_t *v,
    const u_char *last, size_t last_length, u_char **data)
{
    return ngx_http_sluice_var_answer(v->read(r, v), last, last_length, data);
}


static ngx_inline int
ngx_http_sluice_var_answer(ngx_str_t value, const u_char *last,
    size_t last_length, u_char **data)
{
    if (value.len == last_length) {

        if (value.len > NGX_HTTP_SLUICE_VAR_SHORT) {
            return ngx_http_sluice_var_answer_long(value, last, data);
        }

        if (ngx_http_sluice_var_equal(value.data, last, value.len)) {
            return NGX_HTTP_SLUICE_VAR_SAME;
        }
    }

    *data = value.data;

    return (int) value.len;
}


/* On its own, too. */

static int __attribute__ ((noinline))
ngx_http_sluice_var_answer_long(ngx_str_t value, const u_char *last,
    u_char **data)
{
    if (ngx_memcmp(value.data, last, value.len) == 0) {
        return NGX_HTTP_SLUICE_VAR_SAME;
    }

    *data = value.data;

    return (int) value.len;
}


/*
 * The same of several, each with its own result; NGX_HTTP_SLUICE_VAR_FAILED if
 * none could be read.
 */

int
sluice_var_get_bulk(ngx_http_request_t *r, int count,
    sluice_var_value_t *values)
{
    int  i;

    if (r->connection->fd == (ngx_socket_t) -1) {
        return NGX_HTTP_SLUICE_VAR_FAILED;
    }

    for (i = 0; i < count; i++) {
        values[i].length = sluice_var_get(r, values[i].number, values[i].last,
                                          values[i].last_length,
                                          &values[i].data);

        if (values[i].length == NGX_HTTP_SLUICE_VAR_FAILED) {
            return NGX_HTTP_SLUICE_VAR_FAILED;
        }
    }

    return NGX_OK;
}


/* A NULL value is nil. */

int
sluice_var_set(ngx_http_request_t *r, unsigned number, const u_char *data,
    size_t length)
{
    u_char                 *p;
    ngx_pool_t             *block;
    ngx_http_sluice_var_t  *v;

    if (r->connection->fd == (ngx_socket_t) -1
        || number >= ngx_http_sluice_vars_n)
    {
        return NGX_HTTP_SLUICE_VAR_FAILED;
    }

    v = &ngx_http_sluice_vars[number];

    if (!v->changeable) {
        return NGX_HTTP_SLUICE_VAR_FAILED;
    }

    if (data == NULL || length > NGX_HTTP_SLUICE_VAR_SHORT) {
        return ngx_http_sluice_var_write(r, v, data, length);
    }

    /* ngx_pnalloc(), without a call */

    for (block = r->pool->current; block; block = block->d.next) {
        p = block->d.last;

        if ((size_t) (block->d.end - p) >= length) {
            block->d.last = p + length;

            ngx_http_sluice_var_copy(p, data, length);

            return ngx_http_sluice_var_assign(r, v, p, length);
        }
    }

    return ngx_http_sluice_var_write(r, v, data, length);
}


/* With a copy of the value; NULL data is no value. */

static int
ngx_http_sluice_var_write(ngx_http_request_t *r, ngx_http_sluice_var_t *v,
    const u_char *data, size_t length)
{
    u_char  *p;

    if (data == NULL) {
        return ngx_http_sluice_var_assign(r, v, NULL, 0);
    }

    p = ngx_pnalloc(r->pool, length);
    if (p == NULL) {
        return NGX_HTTP_SLUICE_VAR_FAILED;
    }

    ngx_memcpy(p, data, length);

    return ngx_http_sluice_var_assign(r, v, p, length);
}


/* With a value that is in the request's memory. */

static ngx_inline int
ngx_http_sluice_var_assign(ngx_http_request_t *r, ngx_http_sluice_var_t *v,
    u_char *data, size_t length)
{
    if (v->set_handler) {
        return ngx_http_sluice_var_call_set_handler(r, v, data, length);
    }

    ngx_http_sluice_var_fill(&r->variables[v->index], data, length);

    return NGX_OK;
}


/* On its own: a compiler that checks the stack would do so for all. */

static int __attribute__ ((noinline))
ngx_http_sluice_var_call_set_handler(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v, u_char *data, size_t length)
{
    ngx_http_variable_value_t  vv;

    ngx_memzero(&vv, sizeof(ngx_http_variable_value_t));

    ngx_http_sluice_var_fill(&vv, data, length);

    v->set_handler(r, &vv, v->data);

    return NGX_OK;
}


/* Constants: computed flags would be written apart from the length. */

static ngx_inline void
ngx_http_sluice_var_fill(ngx_http_variable_value_t *vv, u_char *data,
    size_t length)
{
    if (data) {
        vv->len = length;
        vv->valid = 1;
        vv->no_cacheable = 0;
        vv->not_found = 0;

    } else {
        vv->len = 0;
        vv->valid = 0;
        vv->no_cacheable = 0;
        vv->not_found = 1;
    }

    vv->data = data;
}


/*
 * Up to NGX_HTTP_SLUICE_VAR_SHORT bytes, in two words that may overlap: calls
 * to memcmp() and memcpy() would cost more than all the rest.
 */

static ngx_inline ngx_uint_t
ngx_http_sluice_var_equal(const u_char *a, const u_char *b, size_t len)
{
    if (len >= 16) {
        return ngx_http_sluice_var_equal_words(a, b, len, 16);
    }

    if (len >= 8) {
        return ngx_http_sluice_var_equal_words(a, b, len, 8);
    }

    if (len >= 4) {
        return ngx_http_sluice_var_equal_words(a, b, len, 4);
    }

    return len == 0
           || (a[0] == b[0]
               && a[len / 2] == b[len / 2]
               && a[len - 1] == b[len - 1]);
}


static ngx_inline ngx_uint_t
ngx_http_sluice_var_equal_words(const u_char *a, const u_char *b, size_t len,
    size_t word)
{
    return memcmp(a, b, word) == 0
           && memcmp(a + len - word, b + len - word, word) == 0;
}


static ngx_inline void
ngx_http_sluice_var_copy(u_char *to, const u_char *from, size_t len)
{
    if (len >= 16) {
        memcpy(to, from, 16);
        memcpy(to + len - 16, from + len - 16, 16);

    } else if (len >= 8) {
        memcpy(to, from, 8);
        memcpy(to + len - 8, from + len - 8, 8);

    } else if (len >= 4) {
        memcpy(to, from, 4);
        memcpy(to + len - 4, from + len - 4, 4);

    } else if (len) {
        to[0] = from[0];
        to[len / 2] = from[len / 2];
        to[len - 1] = from[len - 1];
    }
}
