
/*
 * A location of nginx pays for each phase that it declares in Lua, so there is
 * one for each set of phases, and a request is put into the one that has just
 * those which its plugins need.
 *
 *     location / {
 *         sluice_location native 0;
 *         ...
 *     }
 *     location @sluice_lua_1 {
 *         sluice_location lua 1;
 *         access_by_lua_block { ... }
 *         log_by_lua_block { ... }
 *         ...
 *     }
 *
 * nginx's own ways to a location by name forget the contexts of modules and
 * make the request an internal one.  Here its configuration is exchanged, as
 * nginx does when it has found a location by the URI.
 */


#include "ngx_http_sluice_location.h"


static ngx_http_sluice_location_e ngx_http_sluice_location_read_kind(
    ngx_str_t *text);


char *
ngx_http_sluice_location(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_int_t                             level;
    ngx_str_t                            *value;
    ngx_http_core_loc_conf_t            **place;
    ngx_http_sluice_location_loc_conf_t  *llcf;
    ngx_http_sluice_location_srv_conf_t  *lscf;

    llcf = ngx_http_sluice_set_conf(conf, cmd);
    value = cf->args->elts;

    llcf->kind = ngx_http_sluice_location_read_kind(&value[1]);
    level = ngx_atoi(value[2].data, value[2].len);

    if (llcf->kind == NGX_HTTP_SLUICE_LOCATION_NONE
        || level == NGX_ERROR
        || level >= NGX_HTTP_SLUICE_LEVELS)
    {
        return "wants native, lua, error or response, and a level";
    }

    conf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_sluice_module);
    lscf = ngx_http_sluice_part(conf, location_srv);
    place = &lscf->locations[llcf->kind][level];

    if (*place) {
        return "is there twice";
    }

    *place = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    return NGX_CONF_OK;
}


static ngx_http_sluice_location_e
ngx_http_sluice_location_read_kind(ngx_str_t *text)
{
    if (ngx_strcmp(text->data, "native") == 0) {
        return NGX_HTTP_SLUICE_LOCATION_NATIVE;
    }

    if (ngx_strcmp(text->data, "lua") == 0) {
        return NGX_HTTP_SLUICE_LOCATION_LUA;
    }

    if (ngx_strcmp(text->data, "error") == 0) {
        return NGX_HTTP_SLUICE_LOCATION_ERROR;
    }

    if (ngx_strcmp(text->data, "response") == 0) {
        return NGX_HTTP_SLUICE_LOCATION_RESPONSE;
    }

    return NGX_HTTP_SLUICE_LOCATION_NONE;
}


ngx_http_sluice_location_e
ngx_http_sluice_location_kind(ngx_http_request_t *r)
{
    ngx_http_sluice_location_loc_conf_t  *llcf;

    llcf = ngx_http_sluice_loc_conf(r, location_loc);

    return llcf->kind;
}


/* One that is not configured is not entered. */

void
ngx_http_sluice_location_enter(ngx_http_request_t *r,
    ngx_http_sluice_location_e kind, ngx_uint_t level)
{
    ngx_http_core_loc_conf_t             *clcf;
    ngx_http_sluice_location_srv_conf_t  *lscf;

    lscf = ngx_http_sluice_srv_conf(r, location_srv);
    clcf = lscf->locations[kind][level];

    if (clcf == NULL || clcf->loc_conf == r->loc_conf) {
        return;
    }

    r->loc_conf = clcf->loc_conf;

    ngx_http_update_location_config(r);
}
