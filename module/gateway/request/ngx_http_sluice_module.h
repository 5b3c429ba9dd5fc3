
/*
 * The gateway's one http module, as its rooms see it: where each finds what
 * its directives have set.
 *
 * nginx keeps a configuration of a module for http, one for each server and
 * one for each location.  Ours are structs of parts, and a part is a room's:
 * the room's header has the part's struct and its directives, of which "at"
 * says where the part begins.
 *
 *     typedef struct {
 *         ngx_flag_t  enabled;
 *     } ngx_http_sluice_route_conf_t;
 *
 *     #define NGX_HTTP_SLUICE_ROUTE_DIRECTIVES(at)  { ..., at + offsetof(...
 *
 *     extern const size_t  ngx_http_sluice_route_at;
 *
 * The top joins them (process/ngx_http_sluice_module.c), says what a part is
 * at first and what it has of the configuration around it, and calls what a
 * room does at the start.  A room may not know the rooms above it, so it does
 * not know the whole either: the top hands "at" down, a constant that the
 * linker puts in its place (-flto), so a part costs as much as a module's own
 * configuration did.
 *
 *     conf = ngx_http_sluice_srv_conf(r, route);
 */


#ifndef NGX_HTTP_SLUICE_MODULE_H_INCLUDED
#define NGX_HTTP_SLUICE_MODULE_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


extern ngx_module_t  ngx_http_sluice_module;


/* A request's parts. */

#define ngx_http_sluice_main_conf(r, part)                                    \
    ngx_http_sluice_part(                                                     \
        ngx_http_get_module_main_conf(r, ngx_http_sluice_module), part)

#define ngx_http_sluice_srv_conf(r, part)                                     \
    ngx_http_sluice_part(                                                     \
        ngx_http_get_module_srv_conf(r, ngx_http_sluice_module), part)

#define ngx_http_sluice_loc_conf(r, part)                                     \
    ngx_http_sluice_part(                                                     \
        ngx_http_get_module_loc_conf(r, ngx_http_sluice_module), part)


/* A cycle's, where the caller knows that it has http. */

#define ngx_http_sluice_cycle_conf(cycle, part)                               \
    ngx_http_sluice_part(                                                     \
        ngx_http_cycle_get_module_main_conf(cycle, ngx_http_sluice_module),   \
        part)


/* That of the whole. */

#define ngx_http_sluice_part(conf, part)                                      \
    ((ngx_http_sluice_##part##_conf_t *)                                      \
         ((u_char *) (conf) + ngx_http_sluice_##part##_at))


/* In a directive's own handler: its part, or what of it has cmd->offset. */

#define ngx_http_sluice_set_conf(conf, cmd)                                   \
    ((void *) ((u_char *) (conf) + (cmd)->offset))


#endif /* NGX_HTTP_SLUICE_MODULE_H_INCLUDED */
