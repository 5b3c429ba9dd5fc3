
/*
 * What is written about a request as JSON, by log plugins (the entry) and by
 * the access log (the line): what their files share.
 */


#ifndef NGX_HTTP_SLUICE_LOG_H_INCLUDED
#define NGX_HTTP_SLUICE_LOG_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_sluice_ctx.h"
#include "core.h"
#include "json.h"
#include "json_edit.h"


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
    uint8_t      next;          /* field of this name; 0: there is none */
    unsigned     again:1;       /* there is one before */
    unsigned     bare:1;        /* a parameter without "=" */
    unsigned     secret:1;      /* the value must not be shown */
} ngx_http_sluice_log_field_t;


/* Of one request in hand: nothing here waits. */

typedef struct {
    ngx_uint_t                    nelts;
    ngx_uint_t                    omitted;
    ngx_uint_t                    headers;     /* names are the same in any
                                                  case, and written small */
    uint64_t                      seen;        /* a bit for some names */
    ngx_http_sluice_log_field_t   elts[NGX_HTTP_SLUICE_LOG_FIELDS];
} ngx_http_sluice_log_fields_t;


/* A variable of nginx's, by its name, which is looked up once. */

typedef struct {
    ngx_str_t                   name;
    ngx_http_core_main_conf_t  *of;          /* where it was looked up */
    ngx_http_variable_t        *variable;
} ngx_http_sluice_log_name_t;

#define ngx_http_sluice_log_name(as, name)                                    \
    static ngx_http_sluice_log_name_t  ngx_http_sluice_log_##as = {           \
        ngx_string(name), NULL, NULL                                          \
    }

#define ngx_http_sluice_log_of(r, as)                                         \
    ngx_http_sluice_log_variable(r, &ngx_http_sluice_log_##as)


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
void ngx_http_sluice_log_number(ngx_http_sluice_log_t *log, int64_t number);
ngx_uint_t ngx_http_sluice_log_is_ascii(ngx_http_sluice_log_t *log);

#define ngx_http_sluice_log_string(log, text)                                 \
    ngx_http_sluice_log_put(log, sluice_json_string, text)

#define ngx_http_sluice_log_escape(log, text)                                 \
    ngx_http_sluice_log_put(log, sluice_json_escape, text)

/* As a string, and UTF-8 whatever the text is. */

#define ngx_http_sluice_log_utf8(log, text)                                   \
    ngx_http_sluice_log_put(log, sluice_json_utf8, text)

typedef char *(*ngx_http_sluice_log_write_pt)(char *p, const char *text,
    size_t length);

#define ngx_http_sluice_log_has_room(log, size)                               \
    ((size) <= (size_t) ((log)->end - (log)->pos)                             \
     || ngx_http_sluice_log_grow(log, size))


/* Inline: most of an entry are names that stand in the code. */

static ngx_inline void
ngx_http_sluice_log_raw(ngx_http_sluice_log_t *log, const char *text,
    size_t length)
{
    /* of no bytes text may be NULL */

    if (length && ngx_http_sluice_log_has_room(log, length)) {
        log->pos = ngx_cpymem(log->pos, text, length);
    }
}


static ngx_inline void
ngx_http_sluice_log_put(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_write_pt write, ngx_str_t text)
{
    if (ngx_http_sluice_log_has_room(log, sluice_json_string_bound(text.len)))
    {
        log->pos = (u_char *) write((char *) log->pos, (char *) text.data,
                                    text.len);
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

/* ngx_http_sluice_log_facts.c */

ngx_str_t ngx_http_sluice_log_method(ngx_http_request_t *r);
/* In r's pool, or where nginx has it. */
ngx_str_t ngx_http_sluice_log_target(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);
ngx_uint_t ngx_http_sluice_log_status(ngx_http_request_t *r);

/* Of a try: host and port; 0: it is the name of an upstream without peers. */
ngx_uint_t ngx_http_sluice_log_address(ngx_str_t *peer, ngx_str_t *host,
    ngx_int_t *port);

/* Whether the response is an upstream's, and not the gateway's own. */
ngx_uint_t ngx_http_sluice_log_is_proxied(ngx_http_request_t *r);

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

#define ngx_http_sluice_log_begin_fields(fields, are_headers)                 \
    (fields)->nelts = 0;                                                      \
    (fields)->omitted = 0;                                                    \
    (fields)->headers = are_headers;                                          \
    (fields)->seen = 0

/* Adds one; there must be room. */
ngx_http_sluice_log_field_t *ngx_http_sluice_log_add_field(
    ngx_http_sluice_log_fields_t *fields, ngx_str_t name);

/* A member; of what is cut a second one, with how many are left out. */
void ngx_http_sluice_log_object(ngx_http_sluice_log_t *log,
    const char *name, ngx_http_sluice_log_fields_t *fields);

/* A URI, or a text with one, without its secrets; in r's pool or as it is. */
ngx_str_t ngx_http_sluice_log_redact(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r, ngx_str_t *text);


/* ngx_http_sluice_log_entities.c */

/*
 * Keeps the route and its service for the entry; once the request is matched,
 * where its chain logs.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_log_keep(ngx_http_sluice_ctx_t *ctx,
    const sluice_core_view_t *view, const sluice_core_found_t *route);

/* The same in the request's own memory.  NGX_ERROR: no memory. */
ngx_int_t ngx_http_sluice_log_detach(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);

/* Members; who: those of who asks, of length 0: as it is in the context. */
void ngx_http_sluice_log_entities(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r, const char *who, size_t length);

/* Makes the changes of plugins in Lua: ngx_http_sluice_log_edits.c */
void ngx_http_sluice_log_edits(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);

/* FFI */

/* ngx_http_sluice_log_entry.c */

int sluice_log_entry(ngx_http_request_t *r, const char *who, size_t length,
    int is_edited, sluice_core_text_t *entry);

/* ngx_http_sluice_log_edits.c */

int sluice_log_edit(ngx_http_request_t *r, const sluice_json_edit_t *edit);

/* FFI end */

/* ngx_http_sluice_log_variables.c */

/* Before the configuration is read; when a process begins. */
ngx_int_t ngx_http_sluice_log_add_variables(ngx_conf_t *cf);
void ngx_http_sluice_log_init_process(ngx_cycle_t *cycle);


#endif /* NGX_HTTP_SLUICE_LOG_H_INCLUDED */
