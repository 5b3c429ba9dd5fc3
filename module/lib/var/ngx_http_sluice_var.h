
/*
 * Variables by number.
 *
 * A directive names variables; each gets a number while the configuration is
 * read, and when a process starts nginx's own tables are asked once what a
 * reader of that name would find there.  Reading by number then calls what
 * nginx would call, without hashing and searching for the name.
 *
 * Nothing is put into nginx's index (cmcf->variables): a variable in there is
 * cached for the request, for all of its readers.  What the configuration has
 * indexed by itself ("set", log formats, maps) is read where its other readers
 * read it.
 *
 * Functions that begin with sluice_var_ are called from Lua through FFI.
 */


#ifndef NGX_HTTP_SLUICE_VAR_H_INCLUDED
#define NGX_HTTP_SLUICE_VAR_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <nginx.h>


/* In place of a length.  What FAILED means in words, ngx.var says. */
#define NGX_HTTP_SLUICE_VAR_ABSENT    -1
#define NGX_HTTP_SLUICE_VAR_FAILED    -2
#define NGX_HTTP_SLUICE_VAR_SAME      -3  /* as the value that was given */


/* What follows a prefix; in a header, "-" is "_". */
#define NGX_HTTP_SLUICE_VAR_NAME      1
#define NGX_HTTP_SLUICE_VAR_HEADER    2

/* Up to here the readers of ngx_http_sluice_var_prefix.c know it, in bytes. */
#define NGX_HTTP_SLUICE_VAR_NAME_MAX  31


typedef struct ngx_http_sluice_var_s  ngx_http_sluice_var_t;


/* Returns the value, or: */

#define ngx_http_sluice_var_absent                                            \
    ((ngx_str_t) { (size_t) NGX_HTTP_SLUICE_VAR_ABSENT, NULL })

typedef ngx_str_t (*ngx_http_sluice_var_read_pt)(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);


/* Up to eight bytes of a name behind its prefix; ..._prefix.c compares them */

typedef struct {
    uint64_t                   text;
    uint64_t                   fold;       /* 0x20 where it is a letter */
    uint64_t                   dash;       /* 1 where "-" is as good */
} ngx_http_sluice_var_word_t;


struct ngx_http_sluice_var_s {
    /* resolved when a process starts */
    ngx_http_sluice_var_read_pt  read;
    size_t                       string;   /* in the request, if not empty */
    unsigned                     indexed:1;
    unsigned                     changeable:1;
    ngx_uint_t                   index;    /* in r->variables */
    ngx_http_get_variable_pt     get_handler;
    ngx_http_set_variable_pt     set_handler;
    uintptr_t                    data;     /* of both handlers */
    ngx_str_t                    suffix;   /* what follows the prefix */
    ngx_http_sluice_var_word_t   words[NGX_HTTP_SLUICE_VAR_NAME_MAX / 8];
    ngx_http_sluice_var_word_t   last_word;  /* may have bytes of words, too */

    /* the directive's */
    ngx_str_t                  name;       /* in lower case, without "$" */
    ngx_str_t                  file;
    unsigned                   line:31;
    unsigned                   optional:1;
};


/* FFI */

/* A variable of a bulk read. */

typedef struct {
    const u_char              *last;       /* the caller's, as in a get */
    u_char                    *data;
    int                        last_length;
    unsigned                   number;
    int                        length;     /* or one of the above */
} sluice_var_value_t;


int sluice_var_count(void);
int sluice_var_name(int number, u_char **data);
int sluice_var_get(ngx_http_request_t *r, unsigned number, const u_char *last,
    size_t last_length, u_char **data);
int sluice_var_get_bulk(ngx_http_request_t *r, int count,
    sluice_var_value_t *values);
int sluice_var_set(ngx_http_request_t *r, unsigned number, const u_char *data,
    size_t length);

/* FFI end */


extern ngx_module_t  ngx_http_sluice_var_module;


/* ngx_http_sluice_var_resolve.c */

void ngx_http_sluice_var_resolve(ngx_http_core_main_conf_t *cmcf,
    ngx_http_sluice_var_t *v);

/* ngx_http_sluice_var_read.c */

ngx_str_t ngx_http_sluice_var_read_handler(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);
ngx_str_t ngx_http_sluice_var_read_indexed(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);
ngx_str_t ngx_http_sluice_var_read_absent(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);

ngx_str_t ngx_http_sluice_var_read_string(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);
ngx_str_t ngx_http_sluice_var_read_host(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);
ngx_str_t ngx_http_sluice_var_read_scheme(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);
ngx_str_t ngx_http_sluice_var_read_method(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);
ngx_str_t ngx_http_sluice_var_read_remote_addr(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);

#if (nginx_version < 1023000)

ngx_str_t ngx_http_sluice_var_read_header(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);
ngx_str_t ngx_http_sluice_var_read_headers(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);

#endif

/* ngx_http_sluice_var_prefix.c */

ngx_int_t ngx_http_sluice_var_prepare(ngx_http_sluice_var_t *v,
    ngx_uint_t suffix);

ngx_str_t ngx_http_sluice_var_read_argument(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);

#if (nginx_version < 1023000)

ngx_str_t ngx_http_sluice_var_read_cookie(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);
ngx_str_t ngx_http_sluice_var_read_header_in(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);
ngx_str_t ngx_http_sluice_var_read_header_out(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);
ngx_str_t ngx_http_sluice_var_read_upstream_header(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v);

#endif

/* ngx_http_sluice_var_access.c */

void ngx_http_sluice_var_publish(ngx_array_t *vars);


#endif /* NGX_HTTP_SLUICE_VAR_H_INCLUDED */
