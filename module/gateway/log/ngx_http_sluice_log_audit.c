
/*
 * The line of the audit log: who has asked the admin listener for a change,
 * and how that ended (docs/admin.md).
 */


#include "ngx_http_sluice_log.h"


static void ngx_http_sluice_log_audit_field(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r, ngx_http_sluice_log_name_t *name,
    const char *none);


static ngx_http_sluice_log_t  ngx_http_sluice_log_audit_buffer;

ngx_http_sluice_log_name(audit_by, "sluice_admin_by");
ngx_http_sluice_log_name(audit_revision, "sent_http_sluice_revision");


/* RFC 9110, section 9.2.1: methods that only read; TRACE is nowhere taken */

ngx_uint_t
ngx_http_sluice_log_audit_has(ngx_http_request_t *r)
{
    ngx_str_t   method;
    ngx_uint_t  i;

    static const ngx_str_t  reads[] = {
        ngx_string("GET"),
        ngx_string("HEAD"),
        ngx_string("OPTIONS"),
        ngx_null_string
    };

    method = ngx_http_sluice_log_method(r);

    for (i = 0; reads[i].len; i++) {
        if (method.len == reads[i].len
            && ngx_memcmp(method.data, reads[i].data, method.len) == 0)
        {
            return 0;
        }
    }

    return method.len != 0;
}


ngx_str_t
ngx_http_sluice_log_audit(ngx_http_request_t *r)
{
    ngx_http_sluice_log_t  *log;

    log = &ngx_http_sluice_log_audit_buffer;
    ngx_http_sluice_log_begin(log);

    ngx_http_sluice_log_text(log, "{\"time\":");
    ngx_http_sluice_log_utf8(log, ngx_cached_http_log_iso8601);

    ngx_http_sluice_log_text(log, ",\"by\":");
    ngx_http_sluice_log_audit_field(log, r, &ngx_http_sluice_log_audit_by,
                                    "-");

    ngx_http_sluice_log_text(log, ",\"from\":");
    ngx_http_sluice_log_utf8(log, r->connection->addr_text);

    ngx_http_sluice_log_text(log, ",\"method\":");
    ngx_http_sluice_log_utf8(log, ngx_http_sluice_log_method(r));

    ngx_http_sluice_log_text(log, ",\"path\":");
    ngx_http_sluice_log_utf8(log, ngx_http_sluice_log_target(log, r));

    ngx_http_sluice_log_text(log, ",\"status\":");
    ngx_http_sluice_log_number(log, ngx_http_sluice_log_status(r));

    ngx_http_sluice_log_text(log, ",\"revision\":");
    ngx_http_sluice_log_audit_field(log, r,
                                    &ngx_http_sluice_log_audit_revision, "");

    ngx_http_sluice_log_text(log, "}");

    return ngx_http_sluice_log_copy(log, r);
}


static void
ngx_http_sluice_log_audit_field(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r, ngx_http_sluice_log_name_t *name, const char *none)
{
    ngx_str_t  text;

    text = ngx_http_sluice_log_variable(r, name);

    if (text.len == 0) {
        text.data = (u_char *) none;
        text.len = ngx_strlen(none);
    }

    ngx_http_sluice_log_utf8(log, text);
}
