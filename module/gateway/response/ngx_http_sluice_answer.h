
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


#include "ngx_http_sluice_module.h"
#include "answer.h"


typedef enum {
    NGX_HTTP_SLUICE_ANSWER_ACCEPT = 0,
    NGX_HTTP_SLUICE_ANSWER_CONTENT_TYPE,
    NGX_HTTP_SLUICE_ANSWER_REQUEST_ID,
    NGX_HTTP_SLUICE_ANSWER_RESPONSE_VIA,
    NGX_HTTP_SLUICE_ANSWER_PROXY_MS,
    NGX_HTTP_SLUICE_ANSWER_VARIABLES
} ngx_http_sluice_answer_variable_e;


typedef struct {
    ngx_str_t   server;             /* empty: no such header */
    ngx_str_t   latency;            /* its name; empty: the same */
    int         default_format;     /* for a client that names none */
    ngx_int_t   variables[NGX_HTTP_SLUICE_ANSWER_VARIABLES];    /* indices */
} ngx_http_sluice_answer_conf_t;


#define NGX_HTTP_SLUICE_ANSWER_DIRECTIVES(at)                                 \
    { ngx_string("sluice_answer_server"),                                     \
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,                                      \
      ngx_conf_set_str_slot,                                                  \
      NGX_HTTP_MAIN_CONF_OFFSET,                                              \
      at + offsetof(ngx_http_sluice_answer_conf_t, server),                   \
      NULL },                                                                 \
                                                                              \
    { ngx_string("sluice_answer_latency"),                                    \
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,                                      \
      ngx_conf_set_str_slot,                                                  \
      NGX_HTTP_MAIN_CONF_OFFSET,                                              \
      at + offsetof(ngx_http_sluice_answer_conf_t, latency),                  \
      NULL },                                                                 \
                                                                              \
    { ngx_string("sluice_answer_default_type"),                               \
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,                                      \
      ngx_http_sluice_answer_default_type,                                    \
      NGX_HTTP_MAIN_CONF_OFFSET,                                              \
      at,                                                                     \
      NULL }


extern const size_t  ngx_http_sluice_answer_at;


char *ngx_http_sluice_answer_default_type(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* When the configuration has been read. */
ngx_int_t ngx_http_sluice_answer_init(ngx_conf_t *cf,
    ngx_http_sluice_answer_conf_t *conf);


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
 * The same with a body as it is.  type: of length 0: the response has no
 * Content-Type.  Both are copied.
 */
ngx_int_t ngx_http_sluice_answer_body(ngx_http_request_t *r,
    ngx_uint_t status, ngx_str_t *type, ngx_str_t *body);

/*
 * The same without a body, with a Location (not copied: it has to live as
 * long as the request does).
 */
ngx_int_t ngx_http_sluice_answer_redirect(ngx_http_request_t *r,
    ngx_uint_t status, ngx_str_t *location);

/*
 * Reads the body and throws it away, as far as it comes, without asking the
 * client for it; the connection goes on, unless the client waits to be asked.
 */
void ngx_http_sluice_answer_discard_body(ngx_http_request_t *r);

/* ngx_http_sluice_answer_head.c; NULL, NGX_ERROR: no memory */

ngx_int_t ngx_http_sluice_answer_set_server(ngx_http_request_t *r,
    ngx_str_t *product);
ngx_int_t ngx_http_sluice_answer_set_latency(ngx_http_request_t *r,
    ngx_str_t *name);
ngx_table_elt_t *ngx_http_sluice_answer_push(ngx_http_request_t *r,
    ngx_str_t *name, ngx_str_t *value);


/* ngx_http_sluice_answer_source.c */

/* The client gets a body, or none, by what it has asked. */
void ngx_http_sluice_answer_method(ngx_http_request_t *r);

/* The gateway answers, now. */
void ngx_http_sluice_answer_note(ngx_http_request_t *r);

/* ngx_http_sluice_answer_later.c */

/* Whether Lua runs the plugins, and has called. */
ngx_uint_t ngx_http_sluice_answer_is_lua(ngx_http_request_t *r);

/*
 * Keeps an answer; NGX_HTTP_SLUICE_ANSWER_LATER, or NGX_ERROR: no memory.
 * type: NULL: message is an error's.
 */
ngx_int_t ngx_http_sluice_answer_later(ngx_http_request_t *r,
    ngx_uint_t status, ngx_str_t *message, ngx_str_t *type);


/* FFI */

/* ngx_http_sluice_answer.c */

int sluice_answer_error(ngx_http_request_t *r, int status, const char *message,
    size_t length, sluice_core_text_t *type, sluice_core_text_t *body);
int sluice_answer_error_as(ngx_http_request_t *r, int status,
    const char *message, size_t length, const sluice_core_text_t *type,
    sluice_core_text_t *body);

/* ngx_http_sluice_answer_head.c */

int sluice_answer_own(ngx_http_request_t *r);
void sluice_answer_status(ngx_http_request_t *r, int status);

/* ngx_http_sluice_answer_source.c */

/* Whose response it is: the upstream's, of an exit, or nginx's. */

#define SLUICE_ANSWER_OF_NGINX     0
#define SLUICE_ANSWER_OF_EXIT      1
#define SLUICE_ANSWER_OF_UPSTREAM  2

int sluice_answer_source(ngx_http_request_t *r);

/* A plugin replaces the response that was about to be sent. */
int sluice_answer_exit(ngx_http_request_t *r);

/* FFI end */


#endif /* NGX_HTTP_SLUICE_ANSWER_H_INCLUDED */
