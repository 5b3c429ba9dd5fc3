
/*
 * Responses that the gateway gives in place of an upstream: errors, in the
 * format that the client accepts (module/core/text/answer.h has formats and
 * words), and redirects.
 *
 * Both begin with what tells whose response it is, as nginx.conf says:
 *
 *     http {
 *         sluice_answer_server "sluice/1.0";            # Server
 *         sluice_answer_latency X-Kong-Response-Latency;
 *         sluice_answer_default_type text/plain;        # without Accept
 *     }
 *
 * and they empty $sluice_response_via and $sluice_proxy_ms, which tell of an
 * upstream.  Headers that were set before (r->headers_out) stay.
 */


#ifndef NGX_HTTP_SLUICE_ANSWER_H_INCLUDED
#define NGX_HTTP_SLUICE_ANSWER_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * What is returned where Lua runs the plugins (ctx->in_lua): nothing was sent,
 * the answer stands in the context, and Lua gives it.
 */

#define NGX_HTTP_SLUICE_ANSWER_LATER  -103


/*
 * Answers with an error and sends it.  message: NULL stands for Kong's words
 * for the status; it is copied.  494 and 497 go out as 400.
 *
 * Returns what a handler of the server rewrite, rewrite, access, precontent
 * and content phases returns at once: nginx then finalizes the request.  No
 * other phase may call it.  Does not yield.
 */
ngx_int_t ngx_http_sluice_answer(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *message);

/*
 * The same without a body, with a Location (not copied: it has to live as
 * long as the request does).
 */
ngx_int_t ngx_http_sluice_redirect(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *location);

/* ngx_http_sluice_answer_head.c; NULL, NGX_ERROR: no memory */

ngx_int_t ngx_http_sluice_answer_set_server(ngx_http_request_t *r,
    ngx_str_t *product);
ngx_int_t ngx_http_sluice_answer_set_latency(ngx_http_request_t *r,
    ngx_str_t *name);
ngx_table_elt_t *ngx_http_sluice_answer_push(ngx_http_request_t *r,
    ngx_str_t *name, ngx_str_t *value);


/* ngx_http_sluice_answer_later.c */

/* Whether Lua runs the plugins, and has called. */
ngx_uint_t ngx_http_sluice_answer_is_lua(ngx_http_request_t *r);

/* Keeps an answer; NGX_HTTP_SLUICE_ANSWER_LATER, or NGX_ERROR: no memory. */
ngx_int_t ngx_http_sluice_answer_later(ngx_http_request_t *r,
    ngx_uint_t status, ngx_str_t *message);


#endif /* NGX_HTTP_SLUICE_ANSWER_H_INCLUDED */
