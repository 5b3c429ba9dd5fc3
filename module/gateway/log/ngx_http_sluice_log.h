
/*
 * What is written about a request as JSON, by log plugins (the entry) and by
 * the access log (the line): what their files share.
 */


#ifndef NGX_HTTP_SLUICE_LOG_H_INCLUDED
#define NGX_HTTP_SLUICE_LOG_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Headers, and parameters, that an entry has at most; it says how many it
 * leaves out.  Of more headers it has the first, the last, and Host: what the
 * gateway and its plugins add is behind the client's lines, and on both sides
 * of the upstream's.
 */

#define NGX_HTTP_SLUICE_LOG_FIELDS  100
#define NGX_HTTP_SLUICE_LOG_LAST    50


/*
 * Where an entry is written: one buffer a worker, which grows with the
 * longest.  What nginx takes of a head bounds that one.
 */

typedef struct {
    u_char      *start;
    u_char      *pos;
    u_char      *end;
    ngx_uint_t   failed;        /* no memory: nothing is written any more */
} ngx_http_sluice_log_t;


/* A value under a name; several may have the same. */

typedef struct {
    ngx_str_t    name;
    ngx_str_t    value;
    unsigned     bare:1;        /* a parameter without "=" */
    unsigned     secret:1;      /* the value must not be shown */
    unsigned     done:1;        /* written beside one before it */
} ngx_http_sluice_log_field_t;


/* Of one request in hand: nothing here waits. */

typedef struct {
    ngx_uint_t                    nelts;
    ngx_uint_t                    omitted;
    ngx_http_sluice_log_field_t   elts[NGX_HTTP_SLUICE_LOG_FIELDS];
} ngx_http_sluice_log_fields_t;


/* A variable of nginx's, found by its name. */

typedef struct {
    ngx_str_t    name;
    ngx_uint_t   hash;          /* 0: not computed yet */
} ngx_http_sluice_log_name_t;

#define ngx_http_sluice_log_name(as, name)                                    \
    static ngx_http_sluice_log_name_t  ngx_http_sluice_log_##as = {           \
        ngx_string(name), 0                                                   \
    }


/* ngx_http_sluice_log_write.c */

void ngx_http_sluice_log_begin(ngx_http_sluice_log_t *log);
/*
 * What was written since, of the request: another may be written before this
 * is used.  In r's pool; of length 0: no memory.
 */
ngx_str_t ngx_http_sluice_log_copy(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);
/* Room for so many bytes at pos; 0: no memory, now or before. */
ngx_uint_t ngx_http_sluice_log_grow(ngx_http_sluice_log_t *log, size_t size);
void ngx_http_sluice_log_string(ngx_http_sluice_log_t *log, u_char *text,
    size_t length);
void ngx_http_sluice_log_escape(ngx_http_sluice_log_t *log, u_char *text,
    size_t length);
/* As a string, and UTF-8 whatever the text is. */
void ngx_http_sluice_log_utf8(ngx_http_sluice_log_t *log, u_char *text,
    size_t length);
void ngx_http_sluice_log_number(ngx_http_sluice_log_t *log, int64_t number);
ngx_uint_t ngx_http_sluice_log_is_ascii(ngx_http_sluice_log_t *log);

#define ngx_http_sluice_log_has_room(log, size)                               \
    ((size) <= (size_t) ((log)->end - (log)->pos)                             \
     || ngx_http_sluice_log_grow(log, size))


/* Inline: most of an entry are names that stand in the code. */

static ngx_inline void
ngx_http_sluice_log_raw(ngx_http_sluice_log_t *log, const char *text,
    size_t length)
{
    if (ngx_http_sluice_log_has_room(log, length)) {
        log->pos = ngx_cpymem(log->pos, text, length);
    }
}


#define ngx_http_sluice_log_text(log, text)                                   \
    ngx_http_sluice_log_raw(log, text, sizeof(text) - 1)

/* ngx_http_sluice_log_line.c */

/* The line of the access log, in r's pool; of length 0: no memory. */
ngx_str_t ngx_http_sluice_log_line(ngx_http_request_t *r);

/* ngx_http_sluice_log_audit.c */

/* Whether the request would change anything. */
ngx_uint_t ngx_http_sluice_log_audit_has(ngx_http_request_t *r);
/* The line of the audit log, in r's pool; of length 0: no memory. */
ngx_str_t ngx_http_sluice_log_audit(ngx_http_request_t *r);

/* ngx_http_sluice_access_log.c */

/* Whether the access log has this request; once a request. */
ngx_uint_t ngx_http_sluice_access_log_has(ngx_http_request_t *r);

/* ngx_http_sluice_log_facts.c */

ngx_str_t ngx_http_sluice_log_method(ngx_http_request_t *r);
/* In r's pool, or where nginx has it. */
ngx_str_t ngx_http_sluice_log_target(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);
ngx_uint_t ngx_http_sluice_log_status(ngx_http_request_t *r);

/* Of a try: host and port; 0: it is the name of an upstream without peers. */
ngx_uint_t ngx_http_sluice_log_address(ngx_str_t *peer, ngx_str_t *host,
    ngx_int_t *port);

/* Of length 0 where it has no value. */
ngx_str_t ngx_http_sluice_log_variable(ngx_http_request_t *r,
    ngx_http_sluice_log_name_t *name);

/* members of an object: ngx_http_sluice_log_parameters.c */

void ngx_http_sluice_log_parameters(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);

/* ngx_http_sluice_log_fields.c */

void ngx_http_sluice_log_request_headers(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);
void ngx_http_sluice_log_response_headers(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);

/* A member; of what is cut a second one, with how many are left out. */
void ngx_http_sluice_log_object(ngx_http_sluice_log_t *log,
    const char *name, ngx_http_sluice_log_fields_t *fields);

/* A URI, or a text with one, without its secrets; in r's pool or as it is. */
ngx_str_t ngx_http_sluice_log_redact(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r, ngx_str_t *text);


#endif /* NGX_HTTP_SLUICE_LOG_H_INCLUDED */
