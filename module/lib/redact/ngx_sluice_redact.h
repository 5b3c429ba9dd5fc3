
/*
 * Secrets in texts that are logged.
 *
 * One list has the names, of parameters and headers alike, whose values are
 * secrets: those of HTTP itself, and what the gateway's plugins add.  A name
 * is never taken out of it, since requests under way may still use it.  One
 * that ends with "/" is of paths: what stands behind it is a secret
 * (ngx_sluice_redact_find_segment()).
 *
 * Names that configurations have come from shared memory: the control worker
 * puts them there before what names them is live, and a worker looks there
 * whenever it asks.  So it knows them with its first line.
 */


#ifndef _NGX_SLUICE_REDACT_H_INCLUDED_
#define _NGX_SLUICE_REDACT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


#define NGX_SLUICE_REDACTED       "REDACTED"

/* so many times longer a text may become; " :@" is the shortest with one */

#define NGX_SLUICE_REDACT_GROWTH  4

/* longest name of a secret */

#define NGX_SLUICE_NAME_MAX       255

/* what the text is */

#define NGX_SLUICE_REDACT_URI     0      /* URI, or a line with one */
#define NGX_SLUICE_REDACT_QUERY   1      /* begins with a parameter */
#define NGX_SLUICE_REDACT_LINE    2      /* line of the error log */
#define NGX_SLUICE_REDACT_REQUEST 3      /* a request's first line */


/*
 * In shared memory: names one behind the other, each with its length before
 * it.  One process at a time writes.
 */

#define NGX_SLUICE_SECRETS_SIZE   65532

typedef struct {
    _Atomic uint32_t  used;            /* bytes; more than there are: full */
    u_char            names[NGX_SLUICE_SECRETS_SIZE];
} ngx_sluice_secrets_t;


/* Set in the master, before it forks; NULL: nothing is published. */

extern ngx_sluice_secrets_t  *ngx_sluice_secrets;

/* the variables $sluice_log_<name>; before the configuration is read */

ngx_int_t ngx_http_sluice_redact_add_variable(ngx_conf_t *cf);

/* whether the value of a parameter, or of a header, is a secret */

ngx_uint_t ngx_sluice_redact_is_secret(u_char *name, size_t length);

/*
 * The end of the method of a request's first line; NULL: it is none, since no
 * method and target begin it.  nginx logs as one whatever stands where one is
 * due: the body of a request whose length was wrong, say.
 */

u_char *ngx_sluice_redact_method_end(u_char *p, u_char *last);

/*
 * Writes the text with NGX_SLUICE_REDACTED in the place of each secret;
 * returns the length, at most NGX_SLUICE_REDACT_GROWTH times the text's.
 */

size_t ngx_sluice_redact(u_char *dst, u_char *text, size_t length,
    ngx_uint_t kind);


/* FFI */

size_t sluice_redact(u_char *dst, const u_char *text, size_t length, int kind);
/* Whether a path of it leads to a credential by its secret. */
int sluice_redact_has_segment(const u_char *text, size_t length);
int sluice_redact_add(const u_char *name, size_t length);
int sluice_redact_publish(const u_char *name, size_t length);
int sluice_redact_is_secret(const u_char *name, size_t length);

/* FFI end */


#endif /* _NGX_SLUICE_REDACT_H_INCLUDED_ */
