
/*
 * The request's id in the lines of the error log, and an error in some.
 */


#ifndef NGX_HTTP_SLUICE_ERROR_LOG_H_INCLUDED
#define NGX_HTTP_SLUICE_ERROR_LOG_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Has this process write its error log as ngx_sluice_error_log.h says, with
 * the id of the request that a line belongs to behind it.  Costs a request
 * nothing until it has such a line.  When the process starts, after what looks
 * at the listeners' handlers.
 */
void ngx_http_sluice_error_log_init(ngx_cycle_t *cycle);


/*
 * The error of the system that the last line of this request had which was
 * about a connection to an upstream; 0: there was none since it was asked, or
 * the error log leaves them out.  nginx tells nobody but the log.
 */
ngx_err_t ngx_http_sluice_error_log_connect(ngx_http_request_t *r);


/*
 * What its listeners then do with a connection, in nginx's place; and what
 * begins with one, nginx's own unless somebody stands before it.
 */

extern ngx_connection_handler_pt  ngx_http_sluice_error_log_begin;

void ngx_http_sluice_error_log_connection(ngx_connection_t *c);


#endif /* NGX_HTTP_SLUICE_ERROR_LOG_H_INCLUDED */
