
/*
 * What a master leaves to the one that it executes at a binary upgrade
 * (ngx_sluice_env.c): entries "NAME=value" of its environment.
 */


#ifndef NGX_SLUICE_ENV_H_INCLUDED
#define NGX_SLUICE_ENV_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>


/* Puts an entry into this process's environment, which keeps a copy. */
ngx_int_t ngx_sluice_env_set(ngx_cycle_t *cycle, u_char *entry);

/*
 * Puts it into the environment of what this master executes; the entry has to
 * live as long as the cycle.
 */
void ngx_sluice_env_keep(ngx_cycle_t *cycle, u_char *entry);


#endif /* NGX_SLUICE_ENV_H_INCLUDED */
