
/*
 * The key of a request: where it is, and the request without it
 * (ngx_http_sluice_key_auth.h).
 */


#include "ngx_http_sluice_body.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_key_auth.h"


/* A query, or a body, with what stands under each of the names. */

typedef struct {
    sluice_fields_t        fields;
    sluice_fields_name_t  *names;       /* NULL: there are no fields */
    ngx_uint_t             is_cut;
} ngx_http_sluice_key_auth_place_t;


typedef struct {
    ngx_http_request_t                *request;
    const ngx_http_sluice_key_auth_t  *conf;
    ngx_http_sluice_key_auth_place_t   query;
    ngx_http_sluice_key_auth_place_t   body;
} ngx_http_sluice_key_auth_search_t;


/* What stands under a name. */

typedef struct {
    ngx_str_t    value;
    ngx_uint_t   count;
    ngx_uint_t   is_text;
} ngx_http_sluice_key_auth_found_t;


static ngx_int_t ngx_http_sluice_key_auth_look(
    ngx_http_sluice_key_auth_search_t *search, ngx_uint_t i,
    ngx_http_sluice_key_auth_found_t *found);
static void ngx_http_sluice_key_auth_in_headers(ngx_http_request_t *r,
    const ngx_http_sluice_key_auth_name_t *name,
    ngx_http_sluice_key_auth_found_t *found);
static ngx_int_t ngx_http_sluice_key_auth_in_fields(
    ngx_http_sluice_key_auth_search_t *search,
    const ngx_http_sluice_key_auth_place_t *place, ngx_uint_t i,
    ngx_http_sluice_key_auth_found_t *found);
static void ngx_http_sluice_key_auth_begin(
    ngx_http_sluice_key_auth_search_t *search, ngx_http_request_t *r,
    const ngx_http_sluice_key_auth_t *conf);
static ngx_uint_t ngx_http_sluice_key_auth_hides(ngx_table_elt_t *h,
    void *data);
static ngx_int_t ngx_http_sluice_key_auth_cut_query(
    ngx_http_sluice_key_auth_search_t *search);
static ngx_int_t ngx_http_sluice_key_auth_cut_body(
    ngx_http_sluice_key_auth_search_t *search);
static ngx_int_t ngx_http_sluice_key_auth_cut(
    ngx_http_sluice_key_auth_search_t *search,
    ngx_http_sluice_key_auth_place_t *place, int kind,
    const sluice_core_text_t *type, const ngx_str_t *text);
static ngx_int_t ngx_http_sluice_key_auth_without(
    ngx_http_sluice_key_auth_search_t *search,
    const ngx_http_sluice_key_auth_place_t *place, ngx_str_t *rest);


static ngx_str_t  ngx_http_sluice_key_auth_missing =
    ngx_string("No API key found in request");
static ngx_str_t  ngx_http_sluice_key_auth_duplicate =
    ngx_string("Duplicate API key found");


/* the first name that has a text counts, even if that is empty */

ngx_int_t
ngx_http_sluice_key_auth_find(ngx_http_request_t *r,
    const ngx_http_sluice_key_auth_t *conf, ngx_str_t *key, ngx_str_t *words)
{
    ngx_int_t                          rc;
    ngx_uint_t                         i;
    ngx_http_sluice_key_auth_found_t   found;
    ngx_http_sluice_key_auth_search_t  search;

    ngx_http_sluice_key_auth_begin(&search, r, conf);

    for (i = 0; i < conf->nelts; i++) {

        rc = ngx_http_sluice_key_auth_look(&search, i, &found);
        if (rc != NGX_OK) {
            return rc;
        }

        if (found.count > 1) {
            *words = ngx_http_sluice_key_auth_duplicate;
            return NGX_DECLINED;
        }

        if (!found.is_text) {
            continue;
        }

        if (found.value.len) {
            *key = found.value;
            return NGX_OK;
        }

        break;
    }

    *words = ngx_http_sluice_key_auth_missing;

    return NGX_DECLINED;
}


static void
ngx_http_sluice_key_auth_begin(ngx_http_sluice_key_auth_search_t *search,
    ngx_http_request_t *r, const ngx_http_sluice_key_auth_t *conf)
{
    search->request = r;
    search->conf = conf;
    search->query.is_cut = 0;
    search->body.is_cut = 0;
}


/* headers, then the query, then the body: the first place that has the name */

static ngx_int_t
ngx_http_sluice_key_auth_look(ngx_http_sluice_key_auth_search_t *search,
    ngx_uint_t i, ngx_http_sluice_key_auth_found_t *found)
{
    ngx_int_t                          rc;
    const ngx_http_sluice_key_auth_t  *conf;

    conf = search->conf;
    found->count = 0;
    found->is_text = 0;

    if (conf->flags & NGX_HTTP_SLUICE_KEY_AUTH_HEADER) {
        ngx_http_sluice_key_auth_in_headers(search->request, &conf->names[i],
                                            found);
    }

    if (found->count == 0 && (conf->flags & NGX_HTTP_SLUICE_KEY_AUTH_QUERY)) {

        rc = ngx_http_sluice_key_auth_cut_query(search);

        if (rc == NGX_OK) {
            rc = ngx_http_sluice_key_auth_in_fields(search, &search->query, i,
                                                    found);
        }

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (found->count == 0 && (conf->flags & NGX_HTTP_SLUICE_KEY_AUTH_BODY)) {

        rc = ngx_http_sluice_key_auth_cut_body(search);

        if (rc == NGX_OK) {
            rc = ngx_http_sluice_key_auth_in_fields(search, &search->body, i,
                                                    found);
        }

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


/* clients that cannot send an underscore in a header send a dash */

static void
ngx_http_sluice_key_auth_in_headers(ngx_http_request_t *r,
    const ngx_http_sluice_key_auth_name_t *name,
    ngx_http_sluice_key_auth_found_t *found)
{
    ngx_list_t       *headers;
    ngx_table_elt_t  *h;

    headers = &r->headers_in.headers;

    h = ngx_http_sluice_header_find(headers, name->header.data,
                                    name->header.len, &found->count);

    if (h == NULL && name->dashed.len) {
        h = ngx_http_sluice_header_find(headers, name->dashed.data,
                                        name->dashed.len, &found->count);
    }

    if (h) {
        found->value = h->value;
        found->is_text = 1;
    }
}


static ngx_int_t
ngx_http_sluice_key_auth_in_fields(ngx_http_sluice_key_auth_search_t *search,
    const ngx_http_sluice_key_auth_place_t *place, ngx_uint_t i,
    ngx_http_sluice_key_auth_found_t *found)
{
    sluice_fields_name_t  *name;

    if (place->names == NULL) {
        return NGX_OK;
    }

    name = &place->names[i];
    found->count = name->count;
    found->is_text = name->is_text;

    if (!name->is_text) {
        return NGX_OK;
    }

    found->value.data = ngx_pnalloc(search->request->pool,
                                    ngx_max(name->value.length, 1));
    if (found->value.data == NULL) {
        return NGX_ERROR;
    }

    found->value.len = sluice_fields_decode(&place->fields, &name->value,
                                            (char *) found->value.data);

    return NGX_OK;
}


ngx_int_t
ngx_http_sluice_key_auth_hide(ngx_http_request_t *r,
    const ngx_http_sluice_key_auth_t *conf)
{
    ngx_int_t                          rc;
    ngx_str_t                          rest;
    ngx_http_sluice_key_auth_search_t  search;

    if (!(conf->flags & NGX_HTTP_SLUICE_KEY_AUTH_HIDE)) {
        return NGX_OK;
    }

    ngx_http_sluice_key_auth_begin(&search, r, conf);
    search.body.names = NULL;

    rc = ngx_http_sluice_key_auth_cut_query(&search);

    if (rc == NGX_OK && (conf->flags & NGX_HTTP_SLUICE_KEY_AUTH_BODY)) {
        rc = ngx_http_sluice_key_auth_cut_body(&search);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_sluice_header_clear_all(r, ngx_http_sluice_key_auth_hides,
                                         (void *) conf)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = ngx_http_sluice_key_auth_without(&search, &search.query, &rest);

    if (rc == NGX_OK) {
        r->args = rest;
        r->valid_unparsed_uri = 0;
    }

    if (rc != NGX_ERROR) {
        rc = ngx_http_sluice_key_auth_without(&search, &search.body, &rest);

        if (rc == NGX_OK) {
            rc = ngx_http_sluice_body_replace(r, &rest);
        }
    }

    return (rc == NGX_ERROR) ? NGX_ERROR : NGX_OK;
}


/* As an upstream may read it that makes variables of headers, too. */

static ngx_uint_t
ngx_http_sluice_key_auth_hides(ngx_table_elt_t *h, void *data)
{
    const ngx_http_sluice_key_auth_t  *conf = data;

    u_char      a, b;
    size_t      i;
    ngx_str_t  *name;
    ngx_uint_t  n;

    for (n = 0; n < conf->nelts; n++) {

        name = &conf->names[n].header;

        if (h->key.len != name->len) {
            continue;
        }

        for (i = 0; i < name->len; i++) {
            a = ngx_tolower(h->key.data[i]);
            b = name->data[i];

            if ((a == '_' ? '-' : a) != (b == '_' ? '-' : b)) {
                break;
            }
        }

        if (i == name->len) {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_sluice_key_auth_cut_query(ngx_http_sluice_key_auth_search_t *search)
{
    return ngx_http_sluice_key_auth_cut(search, &search->query,
                                        SLUICE_FIELDS_FORM, NULL,
                                        &search->request->args);
}


static ngx_int_t
ngx_http_sluice_key_auth_cut_body(ngx_http_sluice_key_auth_search_t *search)
{
    int                  kind;
    ngx_int_t            rc;
    ngx_str_t            body;
    ngx_table_elt_t     *h;
    sluice_core_text_t   type;

    if (search->body.is_cut) {
        return NGX_OK;
    }

    ngx_str_null(&body);
    kind = SLUICE_FIELDS_NONE;
    h = search->request->headers_in.content_type;

    if (h) {
        type.data = (const char *) h->value.data;
        type.length = (uint32_t) h->value.len;
        kind = sluice_fields_kind(&type);
    }

    if (kind != SLUICE_FIELDS_NONE) {
        rc = ngx_http_sluice_body(search->request, &body);

        if (rc == NGX_AGAIN || rc == NGX_ERROR) {
            return rc;
        }

        if (rc == NGX_DECLINED) {
            ngx_log_error(NGX_LOG_INFO, search->request->connection->log, 0,
                          "key-auth: no key is read from a body above "
                          "client_body_buffer_size");
        }
    }

    return ngx_http_sluice_key_auth_cut(search, &search->body, kind, &type,
                                        &body);
}


/* once, and for all names, not for each */

static ngx_int_t
ngx_http_sluice_key_auth_cut(ngx_http_sluice_key_auth_search_t *search,
    ngx_http_sluice_key_auth_place_t *place, int kind,
    const sluice_core_text_t *type, const ngx_str_t *text)
{
    ngx_uint_t                         i;
    sluice_core_text_t                 whole;
    const ngx_http_sluice_key_auth_t  *conf;

    if (place->is_cut) {
        return NGX_OK;
    }

    place->is_cut = 1;
    place->names = NULL;

    if (text->len == 0 || text->len > SLUICE_FIELDS_MAX) {
        return NGX_OK;
    }

    whole.data = (const char *) text->data;
    whole.length = (uint32_t) text->len;

    if (sluice_fields_open(&place->fields, kind, type, &whole)
        != SLUICE_CORE_OK)
    {
        return NGX_OK;
    }

    conf = search->conf;

    place->names = ngx_palloc(search->request->pool,
                              conf->nelts * sizeof(sluice_fields_name_t));
    if (place->names == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < conf->nelts; i++) {
        place->names[i].name = conf->names[i].plain;
    }

    sluice_fields_find(&place->fields, place->names, conf->nelts);

    return NGX_OK;
}


/*
 * The text without all names.  NGX_OK; NGX_DECLINED: none is there; NGX_ERROR:
 * no memory.
 */

static ngx_int_t
ngx_http_sluice_key_auth_without(ngx_http_sluice_key_auth_search_t *search,
    const ngx_http_sluice_key_auth_place_t *place, ngx_str_t *rest)
{
    char                *buffer;
    sluice_fields_t      fields;
    sluice_core_text_t   text;

    if (place->names == NULL) {
        return NGX_DECLINED;
    }

    fields = place->fields;

    /* an upstream may find a copy where we look for no key */

    if (fields.kind == SLUICE_FIELDS_FORM) {
        fields.kind = SLUICE_FIELDS_LOOSE;
    }

    buffer = ngx_pnalloc(search->request->pool, fields.end - fields.text);
    if (buffer == NULL) {
        return NGX_ERROR;
    }

    if (sluice_fields_without(&fields, place->names, search->conf->nelts,
                              buffer, &text)
        != SLUICE_CORE_OK)
    {
        return NGX_DECLINED;
    }

    rest->data = (u_char *) text.data;
    rest->len = text.length;

    return NGX_OK;
}
