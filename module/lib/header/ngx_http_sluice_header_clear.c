
/*
 * Headers taken out of a request, as if the client had not sent them.
 */


#include "ngx_http_sluice_header.h"


typedef struct {
    ngx_http_request_t             *request;
    ngx_http_sluice_header_test_pt  test;
    void                           *data;
} ngx_http_sluice_header_cleared_t;


static ngx_uint_t ngx_http_sluice_header_clears(ngx_table_elt_t *h,
    void *data);
static void ngx_http_sluice_header_forget(ngx_http_request_t *r,
    u_char *lowcase, size_t length);


/* NGX_OK, NGX_ERROR: no memory */

ngx_int_t
ngx_http_sluice_header_clear(ngx_http_request_t *r, sluice_header_t *header)
{
    return ngx_http_sluice_header_clear_all(r, ngx_http_sluice_header_is,
                                            header);
}


ngx_int_t
ngx_http_sluice_header_clear_all(ngx_http_request_t *r,
    ngx_http_sluice_header_test_pt test, void *data)
{
    ngx_http_sluice_header_cleared_t  cleared;

    cleared.request = r;
    cleared.test = test;
    cleared.data = data;

    return ngx_http_sluice_header_list_drop(&r->headers_in.headers, r->pool,
                                            ngx_http_sluice_header_clears,
                                            &cleared);
}


static ngx_uint_t
ngx_http_sluice_header_clears(ngx_table_elt_t *h, void *data)
{
    ngx_http_sluice_header_cleared_t  *cleared = data;

    if (!cleared->test(h, cleared->data)) {
        return 0;
    }

    ngx_http_sluice_header_forget(cleared->request, h->lowcase_key,
                                  h->key.len);

    return 1;
}


/* what nginx itself keeps of some headers, from which it makes variables */

static void
ngx_http_sluice_header_forget(ngx_http_request_t *r, u_char *lowcase,
    size_t length)
{
    void                       *place;
    ngx_http_header_t          *known;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    known = ngx_hash_find(&cmcf->headers_in_hash,
                          ngx_hash_key(lowcase, length), lowcase, length);

    if (known == NULL || known->offset == 0) {
        return;
    }

    place = (char *) &r->headers_in + known->offset;

#if (nginx_version < 1023000)

    if (known->offset == offsetof(ngx_http_headers_in_t, cookies)
#if (NGX_HTTP_X_FORWARDED_FOR)
        || known->offset == offsetof(ngx_http_headers_in_t, x_forwarded_for)
#endif
       )
    {
        ((ngx_array_t *) place)->nelts = 0;
        return;
    }

#endif

    *(ngx_table_elt_t **) place = NULL;
}
