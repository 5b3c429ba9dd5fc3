
/*
 * The PROXY protocol on listeners with "proxy_protocol", in place of nginx's
 * own reading of it: that closes where a header comes in two packets or, with
 * TLS, has more than 107 bytes, writes what it cannot read into the error log,
 * a token in it as well, and counts nothing.
 */


#ifndef NGX_HTTP_SLUICE_PROXY_PROTOCOL_H_INCLUDED
#define NGX_HTTP_SLUICE_PROXY_PROTOCOL_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>


/* When a process begins; where no listener has it, nothing is done. */
void ngx_http_sluice_proxy_protocol_init_process(ngx_cycle_t *cycle);


#endif /* NGX_HTTP_SLUICE_PROXY_PROTOCOL_H_INCLUDED */
