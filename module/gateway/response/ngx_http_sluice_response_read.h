
/*
 * What plugins read of an upstream's response
 * (ngx_http_sluice_response_read.c).
 */


#ifndef NGX_HTTP_SLUICE_RESPONSE_READ_H_INCLUDED
#define NGX_HTTP_SLUICE_RESPONSE_READ_H_INCLUDED


#include "ngx_http_sluice_module.h"
#include "core.h"


/* FFI */

/* The status of the last try; 0: it has not answered. */
int sluice_response_status(ngx_http_request_t *r);

/* The first line of a name, in lower case.  NGX_OK, NGX_DECLINED. */
int sluice_response_line_of(ngx_http_request_t *r, const char *name,
    size_t length, sluice_core_text_t *value);

/* Lines from 0 on: the number of the next one; -1: there is none. */
int sluice_response_line(ngx_http_request_t *r, int i,
    sluice_core_text_t *name, sluice_core_text_t *value);

/* FFI end */


#endif /* NGX_HTTP_SLUICE_RESPONSE_READ_H_INCLUDED */
