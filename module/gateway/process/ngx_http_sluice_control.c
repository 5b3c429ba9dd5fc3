
/*
 * Which listeners are the control worker's: those of servers that are marked
 * (directive sluice_control_server).
 */


#include "ngx_http_sluice_control.h"
#include "ngx_sluice_process.h"


static ngx_http_sluice_control_kind_e ngx_http_sluice_control_kind(
    ngx_http_core_srv_conf_t *cscf);
static ngx_int_t ngx_http_sluice_control_check_address(ngx_cycle_t *cycle,
    ngx_http_conf_addr_t *addr);
static ngx_int_t ngx_http_sluice_control_check_listener(ngx_cycle_t *cycle,
    ngx_listening_t *ls);
static ngx_http_core_srv_conf_t *ngx_http_sluice_control_server(
    ngx_listening_t *ls, ngx_uint_t i);


char *
ngx_http_sluice_control_mark(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                       *value;
    ngx_http_sluice_control_conf_t  *sccf;

    sccf = ngx_http_sluice_set_conf(conf, cmd);
    value = cf->args->elts;

    if (sccf->kind) {
        return "is duplicate";
    }

    if (cf->args->nelts == 1 || ngx_strcmp(value[1].data, "admin") == 0) {
        sccf->kind = NGX_HTTP_SLUICE_CONTROL_ADMIN;

    } else if (ngx_strcmp(value[1].data, "status") == 0) {
        sccf->kind = NGX_HTTP_SLUICE_CONTROL_STATUS;

    } else {
        return "wants \"admin\" or \"status\"";
    }

    return NGX_CONF_OK;
}


static ngx_http_sluice_control_kind_e
ngx_http_sluice_control_kind(ngx_http_core_srv_conf_t *cscf)
{
    return ngx_http_sluice_srv_conf(cscf->ctx, control)->kind;
}


/*
 * With "sluice_control on", when all is parsed: is each listener either the
 * control worker's or the traffic workers'?
 */

ngx_int_t
ngx_http_sluice_control_check(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i, j;
    ngx_listening_t            *ls;
    ngx_http_conf_port_t       *port;
    ngx_http_conf_addr_t       *addr;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module);

    port = (cmcf && cmcf->ports) ? cmcf->ports->elts : NULL;

    for (i = 0; port && i < cmcf->ports->nelts; i++) {
        addr = port[i].addrs.elts;

        for (j = 0; j < port[i].addrs.nelts; j++) {

            if (ngx_http_sluice_control_check_address(cycle, &addr[j])
                != NGX_OK)
            {
                return NGX_ERROR;
            }
        }
    }

    ls = cycle->listening.elts;

    for (i = 0; i < cycle->listening.nelts; i++) {

        if (ngx_http_sluice_control_check_listener(cycle, &ls[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_control_check_address(ngx_cycle_t *cycle,
    ngx_http_conf_addr_t *addr)
{
    ngx_uint_t                  i;
    ngx_http_core_srv_conf_t  **cscf;

    cscf = addr->servers.elts;

    for (i = 1; i < addr->servers.nelts; i++) {

        if (ngx_http_sluice_control_kind(cscf[i])
            != ngx_http_sluice_control_kind(cscf[0]))
        {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "servers with and without "
                          "\"sluice_control_server\" cannot share \"listen "
                          "%V\"", &addr->opt.addr_text);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_control_check_listener(ngx_cycle_t *cycle, ngx_listening_t *ls)
{
    ngx_uint_t                 i;
    ngx_http_core_srv_conf_t  *first, *cscf;

    /* addresses that a wildcard's socket serves too */

    first = ngx_http_sluice_control_server(ls, 0);

    for (i = 1; first; i++) {
        cscf = ngx_http_sluice_control_server(ls, i);

        if (cscf == NULL) {
            break;
        }

        if (ngx_http_sluice_control_kind(cscf)
            != ngx_http_sluice_control_kind(first))
        {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "servers with and without "
                          "\"sluice_control_server\" cannot share the socket "
                          "of \"listen %V\": give the other address the "
                          "parameter \"bind\", or another port",
                          &ls->addr_text);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* The default server of the i-th address of a listener of http, or NULL. */

static ngx_http_core_srv_conf_t *
ngx_http_sluice_control_server(ngx_listening_t *ls, ngx_uint_t i)
{
    ngx_http_port_t      *port;
    ngx_http_in_addr_t   *addr;
#if (NGX_HAVE_INET6)
    ngx_http_in6_addr_t  *addr6;
#endif

    port = ls->servers;

    if (ls->handler != ngx_http_init_connection || i >= port->naddrs) {
        return NULL;
    }

#if (NGX_HAVE_INET6)

    if (ls->sockaddr->sa_family == AF_INET6) {
        addr6 = port->addrs;
        return addr6[i].conf.default_server;
    }

#endif

    addr = port->addrs;

    return addr[i].conf.default_server;
}


/* Which of the control worker's a listener is, if any. */

ngx_uint_t
ngx_http_sluice_control_listener(ngx_listening_t *ls)
{
    ngx_http_core_srv_conf_t  *cscf;

    cscf = ngx_http_sluice_control_server(ls, 0);

    return cscf ? ngx_http_sluice_control_kind(cscf)
                : NGX_HTTP_SLUICE_CONTROL_NONE;
}


ngx_uint_t
ngx_http_sluice_control_owns(ngx_listening_t *ls)
{
    return ngx_http_sluice_control_listener(ls)
           != NGX_HTTP_SLUICE_CONTROL_NONE;
}
