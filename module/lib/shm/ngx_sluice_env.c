
/*
 * What a master leaves to the one that it executes at a binary upgrade, and to
 * itself when the module's file was replaced, which is another library to the
 * linker: names of open descriptors, as entries "NAME=value" of its
 * environment.
 */


#include "ngx_sluice_env.h"


/* Puts an entry into this process's environment, which keeps a copy. */

ngx_int_t
ngx_sluice_env_set(ngx_cycle_t *cycle, u_char *entry)
{
    int      rc;
    u_char  *end;

    end = (u_char *) ngx_strchr(entry, '=');

    *end = '\0';
    rc = setenv((char *) entry, (char *) end + 1, 1);
    *end = '=';

    if (rc == -1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "sluice: setenv() failed");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Puts it into the environment of what this master executes: nginx passes on
 * only what is in this array.  The entry has to live as long as the cycle.
 */

void
ngx_sluice_env_keep(ngx_cycle_t *cycle, u_char *entry)
{
    ngx_str_t        *name;
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    name = ngx_array_push(&ccf->env);
    if (name == NULL) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "sluice: no memory; a binary upgrade will not find "
                      "\"%s\"", entry);
        return;
    }

    name->data = entry;
    name->len = (u_char *) ngx_strchr(entry, '=') - entry;
}
