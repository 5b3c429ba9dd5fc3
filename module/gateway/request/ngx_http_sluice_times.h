
/*
 * How long a request took, and in whose hands.
 */


#ifndef NGX_HTTP_SLUICE_TIMES_H_INCLUDED
#define NGX_HTTP_SLUICE_TIMES_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Milliseconds of nginx's clock, which stands still within a turn of the event
 * loop.  To read a better one twice would cost more than all else.
 */

typedef struct {
    uint32_t    total;      /* from the request's first byte to now */
    uint32_t    upstream;   /* sum of its tries, each from the connect to the
                               response's end */
    uint32_t    gateway;    /* until the last try began, without the tries
                               before; all of a request without tries */
    uint32_t    tries;      /* 0: upstream is none */
} ngx_http_sluice_times_t;


/* FFI */

/* Milliseconds since 1970; 0: it was not, or not yet. */

typedef struct {
    double      started;    /* the request's first byte */
    double      asked;      /* the last try began */
    double      head;       /* its response's head came */
    double      ended;      /* its response ended */
} sluice_times_t;

void sluice_times(ngx_http_request_t *r, sluice_times_t *moments);

/* FFI end */


/* In the log phase. */
void ngx_http_sluice_times(ngx_http_request_t *r,
    ngx_http_sluice_times_t *times);


#endif /* NGX_HTTP_SLUICE_TIMES_H_INCLUDED */
