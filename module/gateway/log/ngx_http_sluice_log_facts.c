
/*
 * What all logs say of a request in the same way.
 */


#include "ngx_http_sluice_log.h"
#include "ngx_sluice_redact.h"


static ngx_str_t ngx_http_sluice_log_first_line(ngx_http_request_t *r);
static size_t ngx_http_sluice_log_method_length(ngx_str_t *line);


ngx_http_sluice_log_name(facts_via, "sluice_response_via");


/*
 * As the client has sent it: of a request that nginx refuses the page of
 * errors has GET.
 */

ngx_str_t
ngx_http_sluice_log_method(ngx_http_request_t *r)
{
    ngx_str_t  line, method;

    line = ngx_http_sluice_log_first_line(r);
    method = line;
    method.len = ngx_http_sluice_log_method_length(&line);

    return method.len ? method : r->method_name;
}


/*
 * As the client has sent it, without secrets; also where nginx could make
 * nothing of it.
 */

ngx_str_t
ngx_http_sluice_log_target(ngx_http_sluice_log_t *log, ngx_http_request_t *r)
{
    u_char     *space, *last;
    size_t      method;
    ngx_str_t   target;

    if (r->unparsed_uri.len) {
        return ngx_http_sluice_log_redact(log, r, &r->unparsed_uri);
    }

    target = ngx_http_sluice_log_first_line(r);
    method = ngx_http_sluice_log_method_length(&target);

    if (method == 0) {
        ngx_str_null(&target);
        return target;
    }

    /* with the space, behind which a user name may begin (CONNECT) */

    target.data += method;
    target.len -= method;
    target = ngx_http_sluice_log_redact(log, r, &target);

    if (target.len == 0) {
        return target;
    }

    target.data++;
    target.len--;

    last = target.data + target.len;
    space = memrchr(target.data, ' ', target.len);

    if (space && last - space > 5 && ngx_memcmp(space, " HTTP/", 6) == 0) {
        target.len = space - target.data;
    }

    return target;
}


/* nginx knows none that it could not read; as its variable $request has it */

static ngx_str_t
ngx_http_sluice_log_first_line(ngx_http_request_t *r)
{
    u_char     *p;
    ngx_str_t   line;

    if (r->request_line.len || r->request_start == NULL) {
        return r->request_line;
    }

    line.data = r->request_start;

    for (p = line.data; p < r->header_in->last; p++) {
        if (*p == CR || *p == LF) {
            break;
        }
    }

    line.len = p - line.data;

    return line;
}


/* 0: it is no request's first line, whatever it is */

static size_t
ngx_http_sluice_log_method_length(ngx_str_t *line)
{
    u_char  *end;

    end = ngx_sluice_redact_method_end(line->data, line->data + line->len);

    return end ? (size_t) (end - line->data) : 0;
}


/* as $status */

ngx_uint_t
ngx_http_sluice_log_status(ngx_http_request_t *r)
{
    if (r->err_status) {
        return r->err_status;
    }

    if (r->headers_out.status) {
        return r->headers_out.status;
    }

    return r->http_version == NGX_HTTP_VERSION_9 ? 9 : 0;
}


/* "127.0.0.1:80", "[::1]:80" */

ngx_uint_t
ngx_http_sluice_log_address(ngx_str_t *peer, ngx_str_t *host, ngx_int_t *port)
{
    u_char  *colon, *last;

    last = peer->data + peer->len;
    colon = memrchr(peer->data, ':', peer->len);

    if (colon == NULL) {
        return 0;
    }

    *port = ngx_atoi(colon + 1, last - colon - 1);

    if (*port == NGX_ERROR) {
        return 0;
    }

    host->data = peer->data;
    host->len = colon - peer->data;

    if (host->len >= 2 && host->data[0] == '[') {
        host->data++;
        host->len -= 2;
    }

    return 1;
}


/* the gateway empties the variable where it answers itself */

ngx_uint_t
ngx_http_sluice_log_is_proxied(ngx_http_request_t *r)
{
    ngx_uint_t                  n;
    ngx_http_upstream_state_t  *state;

    n = r->upstream_states ? r->upstream_states->nelts : 0;

    if (n == 0) {
        return 0;
    }

    state = r->upstream_states->elts;

    return state[n - 1].header_time != (ngx_msec_t) -1
           && ngx_http_sluice_log_of(r, facts_via).len;
}


ngx_str_t
ngx_http_sluice_log_variable(ngx_http_request_t *r,
    ngx_http_sluice_log_name_t *name)
{
    ngx_str_t                   text;
    ngx_http_variable_value_t  *v, value;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    if (name->of != cmcf) {
        name->of = cmcf;
        name->variable = ngx_hash_find(&cmcf->variables_hash,
                              ngx_hash_key(name->name.data, name->name.len),
                              name->name.data, name->name.len);
    }

    if (name->variable == NULL) {
        /* one of a prefix, or none */
        v = ngx_http_get_variable(r, &name->name,
                              ngx_hash_key(name->name.data, name->name.len));

    } else if (name->variable->flags & NGX_HTTP_VAR_INDEXED) {
        v = ngx_http_get_flushed_variable(r, name->variable->index);

    } else {
        ngx_memzero(&value, sizeof(ngx_http_variable_value_t));
        v = name->variable->get_handler(r, &value, name->variable->data)
            == NGX_OK ? &value : NULL;
    }

    ngx_str_null(&text);

    if (v && !v->not_found) {
        text.data = v->data;
        text.len = v->len;
    }

    return text;
}
