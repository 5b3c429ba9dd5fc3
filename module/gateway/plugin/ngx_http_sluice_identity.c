
/*
 * Who a request comes from (ngx_http_sluice_identity.h): recorded in its
 * context, told to the upstream.
 */


#include "ngx_sluice_images.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_identity.h"
#include "uuid.h"


#define NGX_HTTP_SLUICE_IDENTITY_HEADERS  5


/* What the headers say, in their order below. */

typedef struct {
    ngx_str_t  values[NGX_HTTP_SLUICE_IDENTITY_HEADERS];
} ngx_http_sluice_identity_values_t;

#define NGX_HTTP_SLUICE_IDENTITY_CONSUMER    0
#define NGX_HTTP_SLUICE_IDENTITY_CUSTOM_ID   1
#define NGX_HTTP_SLUICE_IDENTITY_USERNAME    2
#define NGX_HTTP_SLUICE_IDENTITY_CREDENTIAL  3
#define NGX_HTTP_SLUICE_IDENTITY_ANONYMOUS   4


static ngx_int_t ngx_http_sluice_identity_consumer(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_core_found_t *consumer,
    ngx_str_t *values);
static ngx_int_t ngx_http_sluice_identity_id(ngx_pool_t *pool,
    const sluice_core_entity_t *head, ngx_str_t *id);
static ngx_int_t ngx_http_sluice_identity_report(ngx_http_request_t *r,
    ngx_http_sluice_identity_values_t *reported);
static ngx_uint_t ngx_http_sluice_identity_is_header(ngx_table_elt_t *h,
    void *data);
static ngx_int_t ngx_http_sluice_identity_clear(ngx_http_request_t *r);
static ngx_uint_t ngx_http_sluice_identity_is_plain(const char *data,
    size_t length);
static ngx_int_t ngx_http_sluice_identity_copy(ngx_pool_t *pool,
    const char *data, size_t length, ngx_str_t *copy);


#define ngx_http_sluice_identity_header(name, lowcase)                        \
    { (u_char *) name, (u_char *) lowcase, sizeof(name) - 1, 0, 0 }

static sluice_header_t
    ngx_http_sluice_identity_headers[NGX_HTTP_SLUICE_IDENTITY_HEADERS] =
{
    ngx_http_sluice_identity_header("X-Consumer-ID", "x-consumer-id"),
    ngx_http_sluice_identity_header("X-Consumer-Custom-ID",
                                    "x-consumer-custom-id"),
    ngx_http_sluice_identity_header("X-Consumer-Username",
                                    "x-consumer-username"),
    ngx_http_sluice_identity_header("X-Credential-Identifier",
                                    "x-credential-identifier"),
    ngx_http_sluice_identity_header("X-Anonymous-Consumer",
                                    "x-anonymous-consumer")
};


/* of the worker; a double holds all of them */

static uint64_t  ngx_http_sluice_identity_serial;


ngx_int_t
ngx_http_sluice_identity_set(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    const sluice_core_found_t *consumer, const sluice_core_found_t *credential,
    const sluice_core_text_t *identifier)
{
    ngx_str_t                          *values;
    sluice_core_entity_t                head;
    ngx_http_sluice_identity_values_t   reported;

    ngx_memzero(&reported, sizeof(ngx_http_sluice_identity_values_t));
    values = reported.values;

    ctx->consumer_slot = SLUICE_CORE_NOBODY;
    ctx->credential_slot = SLUICE_CORE_NOBODY;
    ctx->consumer_chain = NULL;
    ctx->own_identity = 0;
    ctx->own_credential = 0;
    ctx->running.identity = (double) ++ngx_http_sluice_identity_serial;

    if (consumer
        && ngx_http_sluice_identity_consumer(r, ctx, consumer, values)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (credential) {
        sluice_core_head(credential, &head);
        ctx->credential_slot = head.slot;
        ctx->credential_generation = head.generation;

        if (ngx_http_sluice_identity_id(r->pool, &head,
                &values[NGX_HTTP_SLUICE_IDENTITY_CREDENTIAL])
            != NGX_OK)
        {
            return NGX_ERROR;
        }

    } else {
        ngx_str_set(&values[NGX_HTTP_SLUICE_IDENTITY_ANONYMOUS], "true");
    }

    ctx->consumer = values[NGX_HTTP_SLUICE_IDENTITY_CONSUMER];
    ctx->credential = values[NGX_HTTP_SLUICE_IDENTITY_CREDENTIAL];
    ctx->username = values[NGX_HTTP_SLUICE_IDENTITY_USERNAME];

    if (identifier->data
        && ngx_http_sluice_identity_copy(r->pool, identifier->data,
               identifier->length,
               &values[NGX_HTTP_SLUICE_IDENTITY_CREDENTIAL])
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_sluice_identity_report(r, &reported);
}


static ngx_int_t
ngx_http_sluice_identity_consumer(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_core_found_t *consumer,
    ngx_str_t *values)
{
    sluice_core_text_t    text;
    sluice_core_entity_t  head;

    sluice_core_head(consumer, &head);
    ctx->consumer_slot = head.slot;
    ctx->consumer_generation = head.generation;

    if (ngx_http_sluice_identity_id(r->pool, &head,
            &values[NGX_HTTP_SLUICE_IDENTITY_CONSUMER])
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    text = sluice_core_text(consumer, SLUICE_CORE_CONSUMER_CUSTOM_ID);

    if (ngx_http_sluice_identity_copy(r->pool, text.data, text.length,
            &values[NGX_HTTP_SLUICE_IDENTITY_CUSTOM_ID])
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    text = sluice_core_text(consumer, SLUICE_CORE_CONSUMER_USERNAME);

    if (ngx_http_sluice_identity_copy(r->pool, text.data, text.length,
            &values[NGX_HTTP_SLUICE_IDENTITY_USERNAME])
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_identity_id(ngx_pool_t *pool, const sluice_core_entity_t *head,
    ngx_str_t *id)
{
    id->data = ngx_pnalloc(pool, SLUICE_UUID_TEXT);
    if (id->data == NULL) {
        return NGX_ERROR;
    }

    id->len = SLUICE_UUID_TEXT;
    sluice_uuid_write((char *) id->data, head->id);

    return NGX_OK;
}


/*
 * What a Lua plugin says: consumers and credentials that the store need not
 * know.  Of a consumer that it knows, the configurations are found by it.
 */

int
sluice_identity_set(ngx_http_request_t *r, const sluice_identity_t *identity)
{
    ngx_str_t                          *values;
    sluice_core_found_t                 found;
    sluice_core_entity_t                head;
    ngx_http_sluice_ctx_t              *ctx;
    ngx_http_sluice_identity_values_t   reported;

    ctx = r ? ngx_http_sluice_ctx_make(r) : NULL;
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(&reported, sizeof(ngx_http_sluice_identity_values_t));
    values = reported.values;

    if (ngx_http_sluice_identity_copy(r->pool, identity->consumer.data,
            identity->consumer.length,
            &values[NGX_HTTP_SLUICE_IDENTITY_CONSUMER])
           != NGX_OK
        || ngx_http_sluice_identity_copy(r->pool, identity->custom_id.data,
               identity->custom_id.length,
               &values[NGX_HTTP_SLUICE_IDENTITY_CUSTOM_ID])
           != NGX_OK
        || ngx_http_sluice_identity_copy(r->pool, identity->username.data,
               identity->username.length,
               &values[NGX_HTTP_SLUICE_IDENTITY_USERNAME])
           != NGX_OK
        || ngx_http_sluice_identity_copy(r->pool, identity->credential.data,
               identity->credential.length,
               &values[NGX_HTTP_SLUICE_IDENTITY_CREDENTIAL])
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (identity->credential.length == 0) {
        ngx_str_set(&values[NGX_HTTP_SLUICE_IDENTITY_ANONYMOUS], "true");
    }

    ctx->consumer = values[NGX_HTTP_SLUICE_IDENTITY_CONSUMER];
    ctx->credential = values[NGX_HTTP_SLUICE_IDENTITY_CREDENTIAL];
    ctx->username = values[NGX_HTTP_SLUICE_IDENTITY_USERNAME];
    ctx->consumer_slot = SLUICE_CORE_NOBODY;
    ctx->credential_slot = SLUICE_CORE_NOBODY;
    ctx->consumer_chain = NULL;
    ctx->own_identity = 1;
    ctx->own_credential = identity->has_credential != 0;
    ctx->running.identity = -(double) ++ngx_http_sluice_identity_serial;

    if (ngx_http_sluice_identity_find(&ctx->consumer, &found) == NGX_OK) {
        sluice_core_head(&found, &head);
        ctx->consumer_slot = head.slot;
        ctx->consumer_generation = head.generation;
    }

    if (identity->is_silent) {
        return NGX_OK;
    }

    return (int) ngx_http_sluice_identity_report(r, &reported);
}


double
sluice_identity_serial(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = r && r->variables ? ngx_http_sluice_ctx(r) : NULL;

    return ctx ? ctx->running.identity : 0;
}


ngx_int_t
ngx_http_sluice_identity_find(const ngx_str_t *id, sluice_core_found_t *found)
{
    u_char       c, bytes[16];
    ngx_int_t    byte;
    ngx_uint_t   i, n;

    if (id->len != SLUICE_UUID_TEXT) {
        return NGX_DECLINED;
    }

    for (i = 0, n = 0; i < id->len; i++) {
        c = id->data[i];

        if (i == 8 || i == 13 || i == 18 || i == 23) {

            if (c != '-') {
                return NGX_DECLINED;
            }

            continue;
        }

        byte = ngx_hextoi(&id->data[i++], 2);
        if (byte == NGX_ERROR) {
            return NGX_DECLINED;
        }

        bytes[n++] = (u_char) byte;
    }

    if (sluice_images_by_id(SLUICE_CORE_CONSUMER, bytes, found)
        != SLUICE_CORE_OK)
    {
        return NGX_DECLINED;
    }

    return NGX_OK;
}


/* A client must not speak in the gateway's name: its own lines go. */

static ngx_int_t
ngx_http_sluice_identity_report(ngx_http_request_t *r,
    ngx_http_sluice_identity_values_t *reported)
{
    ngx_uint_t        i;
    sluice_header_t  *header;

    if (ngx_http_sluice_identity_clear(r) != NGX_OK) {
        return NGX_ERROR;
    }

    header = ngx_http_sluice_identity_headers;

    for (i = 0; i < NGX_HTTP_SLUICE_IDENTITY_HEADERS; i++) {

        if (reported->values[i].len == 0) {
            continue;
        }

        if (header[i].hash == 0) {
            header[i].hash = ngx_hash_key(header[i].lowcase, header[i].length);
        }

        if (ngx_http_sluice_header_add(r, &r->headers_in.headers, &header[i],
                                       reported->values[i].data,
                                       reported->values[i].len)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_identity_clear(ngx_http_request_t *r)
{
    return ngx_http_sluice_header_list_drop(&r->headers_in.headers, r->pool,
                                            ngx_http_sluice_identity_is_header,
                                            NULL);
}


static ngx_uint_t
ngx_http_sluice_identity_is_header(ngx_table_elt_t *h, void *data)
{
    ngx_uint_t        i;
    sluice_header_t  *header;

    if (h->key.len < sizeof("X-Consumer-ID") - 1
        || (h->key.data[0] | 0x20) != 'x')
    {
        return 0;
    }

    header = ngx_http_sluice_identity_headers;

    for (i = 0; i < NGX_HTTP_SLUICE_IDENTITY_HEADERS; i++) {

        if (ngx_http_sluice_header_is(h, &header[i])) {
            return 1;
        }
    }

    return 0;
}


/*
 * Whether no byte is to be escaped; eight of them at once, the last ones again
 * with those before.
 */

static ngx_uint_t
ngx_http_sluice_identity_is_plain(const char *data, size_t length)
{
    size_t    i;
    uint64_t  word, control, del;

    if (length < sizeof(word)) {
        return 0;
    }

    for (i = 0; i < length; i += sizeof(word)) {

        if (i > length - sizeof(word)) {
            i = length - sizeof(word);
        }

        ngx_memcpy(&word, data + i, sizeof(word));

        /* the top bit of the lowest byte that is below 0x20, that is 0 */

        control = (word - 0x2020202020202020ull) & ~word;
        word ^= 0x7f7f7f7f7f7f7f7full;
        del = (word - 0x0101010101010101ull) & ~word;

        if ((control | del) & 0x8080808080808080ull) {
            return 0;
        }
    }

    return 1;
}


/* As a header's value: bytes that none may have are escaped. */

static ngx_int_t
ngx_http_sluice_identity_copy(ngx_pool_t *pool, const char *data,
    size_t length, ngx_str_t *copy)
{
    size_t   i, escaped;
    u_char  *p;

    if (length == 0) {
        ngx_str_null(copy);
        return NGX_OK;
    }

    escaped = 0;

    if (!ngx_http_sluice_identity_is_plain(data, length)) {

        for (i = 0; i < length; i++) {
            escaped += (u_char) data[i] < 0x20 || data[i] == 0x7f;
        }
    }

    p = ngx_pnalloc(pool, length + escaped * 2);
    if (p == NULL) {
        return NGX_ERROR;
    }

    copy->data = p;
    copy->len = length + escaped * 2;

    if (escaped == 0) {
        ngx_memcpy(p, data, length);
        return NGX_OK;
    }

    for (i = 0; i < length; i++) {

        if ((u_char) data[i] < 0x20 || data[i] == 0x7f) {
            p = ngx_sprintf(p, "%%%02XD", (uint32_t) (u_char) data[i]);

        } else {
            *p++ = (u_char) data[i];
        }
    }

    return NGX_OK;
}


/* NGX_OK; NGX_DECLINED: nobody is known, the rest is not set. */

int
sluice_identity(ngx_http_request_t *r, sluice_identity_t *identity)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = r && r->variables ? ngx_http_sluice_ctx(r) : NULL;

    if (ctx == NULL
        || (ctx->consumer.len == 0 && ctx->credential.len == 0
            && !ctx->own_identity))
    {
        return NGX_DECLINED;
    }

    identity->consumer.data = (const char *) ctx->consumer.data;
    identity->consumer.length = ctx->consumer.len;
    identity->credential.data = (const char *) ctx->credential.data;
    identity->credential.length = ctx->credential.len;
    identity->consumer_slot = ctx->consumer_slot;
    identity->consumer_generation = ctx->consumer_generation;
    identity->credential_slot = ctx->credential_slot;
    identity->credential_generation = ctx->credential_generation;
    identity->is_own = ctx->own_identity;

    return NGX_OK;
}
