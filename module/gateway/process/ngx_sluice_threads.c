
/*
 * Thread pools are the control worker's alone (under "sluice_control on").
 *
 * nginx starts the threads of each pool in each worker.  A traffic worker has
 * no use for them, and pays for them with each request: in a process with one
 * thread the kernel takes no reference to a file for a system call, and libc
 * neither locks nor can be cancelled.
 *
 * Hence this module stands before nginx's own (module/config), and traffic
 * workers find no pools; ngx.run_worker_thread says so.
 */


#include "ngx_sluice.h"


static ngx_int_t ngx_sluice_threads_init_process(ngx_cycle_t *cycle);


#if (NGX_THREADS)

extern ngx_module_t  ngx_thread_pool_module;


/* What a configuration without pools is: more zeros than nginx reads. */

static u_char  ngx_sluice_threads_none[256];

#endif


static ngx_core_module_t  ngx_sluice_threads_module_ctx = {
    ngx_string("sluice_threads"),
    NULL,
    NULL
};


ngx_module_t  ngx_sluice_threads_module = {
    NGX_MODULE_V1,
    &ngx_sluice_threads_module_ctx,        /* module context */
    NULL,                                  /* module directives */
    NGX_CORE_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_sluice_threads_init_process,       /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_sluice_threads_init_process(ngx_cycle_t *cycle)
{
#if (NGX_THREADS)

    ngx_sluice_conf_t  *conf;

    conf = (ngx_sluice_conf_t *)
               ngx_get_conf(cycle->conf_ctx, ngx_sluice_module);

    if (conf->control && ngx_process == NGX_PROCESS_WORKER && ngx_worker) {
        ngx_get_conf(cycle->conf_ctx, ngx_thread_pool_module) =
                                             (void *) ngx_sluice_threads_none;
    }

#endif

    return NGX_OK;
}
