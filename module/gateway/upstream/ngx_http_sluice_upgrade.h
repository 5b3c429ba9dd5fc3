
/*
 * The one switch of protocols that passes: a client's to WebSocket (RFC 9110,
 * 7.8; RFC 6455, 4.1).  All others end here, as hop-by-hop headers do: behind
 * an h2c tunnel nobody would look at requests.
 */


#ifndef NGX_HTTP_SLUICE_UPGRADE_H_INCLUDED
#define NGX_HTTP_SLUICE_UPGRADE_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Whether a request whose Connection names Upgrade may switch: a GET of
 * HTTP/1.1 without a body, with one line of Upgrade that has one protocol.  If
 * so, the line is marked by its value, which is ours from now on.
 */

ngx_uint_t ngx_http_sluice_upgrade_accept(ngx_http_request_t *r);

/* Whether it was accepted, and no plugin has changed the line since. */

ngx_uint_t ngx_http_sluice_upgrade_asked(ngx_http_request_t *r);

/*
 * Makes the client's head of a 101.  NGX_DECLINED: nobody has asked for it, or
 * it is for another protocol.  NGX_ERROR: no memory.
 */

ngx_int_t ngx_http_sluice_upgrade_switch(ngx_http_request_t *r);

/*
 * Has the response say which protocols a client must ask for (RFC 9110, 7.8):
 * the lines Upgrade and Connection.  HTTP/2 has neither.  The value is not
 * copied.  NGX_ERROR: no memory.
 */

ngx_int_t ngx_http_sluice_upgrade_require(ngx_http_request_t *r,
    ngx_str_t *protocols);

/* The same with each line of Upgrade that the upstream's 426 has. */

ngx_int_t ngx_http_sluice_upgrade_required(ngx_http_request_t *r);


#endif /* NGX_HTTP_SLUICE_UPGRADE_H_INCLUDED */
