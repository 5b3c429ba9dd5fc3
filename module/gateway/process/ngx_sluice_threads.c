
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
 *
 * Where a worker exits nginx waits for the threads of each pool, spinning, and
 * before anything is closed.  Those that ask a silent name server would hold
 * it for as long as libc asks, so they are not waited for: the process ends
 * beside them.  What they may still touch stays until then.
 */


#include "ngx_sluice_process.h"


#define NGX_SLUICE_THREADS_NAMES  "sluice_dns"    /* cli/nginx/conf.lua */


static void *ngx_sluice_threads_create_conf(ngx_cycle_t *cycle);
static ngx_int_t ngx_sluice_threads_init_process(ngx_cycle_t *cycle);
static void ngx_sluice_threads_exit_process(ngx_cycle_t *cycle);
static void ngx_sluice_threads_end(void *data);


#if (NGX_THREADS)

#include <ngx_thread_pool.h>


extern ngx_module_t  ngx_thread_pool_module;


/* What a configuration without pools is: more zeros than nginx reads. */

static u_char  ngx_sluice_threads_none[256];

#endif


static ngx_uint_t  ngx_sluice_threads_left;    /* threads that go on */


static ngx_core_module_t  ngx_sluice_threads_module_ctx = {
    ngx_string("sluice_threads"),
    ngx_sluice_threads_create_conf,
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
    ngx_sluice_threads_exit_process,       /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


/* The pool's first cleanup is its last to run: Lua is closed by then. */

static void *
ngx_sluice_threads_create_conf(ngx_cycle_t *cycle)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(cycle->pool, 0);
    if (cln == NULL) {
        return NULL;
    }

    cln->handler = ngx_sluice_threads_end;

    return cln;
}


static ngx_int_t
ngx_sluice_threads_init_process(ngx_cycle_t *cycle)
{
#if (NGX_THREADS)

    ngx_sluice_process_conf_t  *conf;

    conf = ngx_sluice_process_conf(cycle);

    if (conf->control && ngx_process == NGX_PROCESS_WORKER && ngx_worker) {
        ngx_get_conf(cycle->conf_ctx, ngx_thread_pool_module) =
                                             (void *) ngx_sluice_threads_none;
    }

#endif

    return NGX_OK;
}


/* nginx's configuration of pools begins with the array of them */

static void
ngx_sluice_threads_exit_process(ngx_cycle_t *cycle)
{
#if (NGX_THREADS)

    ngx_str_t           name;
    ngx_uint_t          i;
    ngx_array_t        *pools;
    ngx_thread_pool_t  *names, **pool;

    pools = (ngx_array_t *) ngx_get_conf(cycle->conf_ctx,
                                         ngx_thread_pool_module);

    if (ngx_process != NGX_PROCESS_WORKER || pools == NULL) {
        return;
    }

    ngx_str_set(&name, NGX_SLUICE_THREADS_NAMES);
    names = ngx_thread_pool_get(cycle, &name);
    pool = pools->elts;

    for (i = 0; i < pools->nelts; i++) {

        if (pool[i] == names) {
            pool[i] = pool[--pools->nelts];
            ngx_sluice_threads_left = 1;
            break;
        }
    }

#endif
}


/* as nginx ends a worker, before it frees what threads that are left have */

static void
ngx_sluice_threads_end(void *data)
{
    if (ngx_sluice_threads_left) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0, "exit");
        exit(0);
    }
}
