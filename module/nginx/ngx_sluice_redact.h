
/*
 * Secrets in texts that are logged.
 *
 * One list has the names, of parameters and headers alike, whose values are
 * secrets: those of HTTP itself, and what the gateway's plugins add.  A name
 * is never taken out of it, since requests under way may still use it.
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


/* the variables $sluice_log_<name>; before the configuration is read */

ngx_int_t ngx_http_sluice_redact_add_variable(ngx_conf_t *cf);

/* whether the value of a parameter, or of a header, is a secret */

ngx_uint_t ngx_sluice_redact_is_secret(u_char *name, size_t length);

/*
 * Writes the text with NGX_SLUICE_REDACTED in the place of each secret;
 * returns the length, at most NGX_SLUICE_REDACT_GROWTH times the text's.
 */

size_t ngx_sluice_redact(u_char *dst, u_char *text, size_t length,
    ngx_uint_t kind);


#endif /* _NGX_SLUICE_REDACT_H_INCLUDED_ */
