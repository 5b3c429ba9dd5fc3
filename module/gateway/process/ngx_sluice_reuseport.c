
/*
 * "listen ... reuseport": the kernel spreads connections over the sockets of
 * all workers.  Those that the master keeps open for a worker who does not
 * accept on them would never be taken, so a program of classic BPF chooses:
 * the control worker's socket for its own listeners, one of the traffic
 * workers' at random for the others.
 *
 * nginx opens a group's sockets in the order of its workers and keeps that
 * order over reloads and upgrades, and so does the kernel.
 */


#include "ngx_sluice_process.h"

#include <linux/filter.h>


static ngx_int_t ngx_sluice_reuseport_choose(ngx_listening_t *ls,
    ngx_uint_t first, ngx_uint_t count);
static void ngx_sluice_reuseport_drain(ngx_listening_t *ls);


/* Runs in the master, when the sockets are open. */

void
ngx_sluice_reuseport_init(ngx_cycle_t *cycle)
{
    ngx_int_t         rc;
    ngx_uint_t        i;
    ngx_core_conf_t  *ccf;
    ngx_listening_t  *ls;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    ls = cycle->listening.elts;

    for (i = 0; i < cycle->listening.nelts; i++) {

        if (!ls[i].reuseport || ls[i].worker != 0
            || ls[i].type != SOCK_STREAM)
        {
            continue;
        }

        rc = ngx_http_sluice_control_owns(&ls[i])
             ? ngx_sluice_reuseport_choose(&ls[i], 0, 1)
             : ngx_sluice_reuseport_choose(&ls[i], 1,
                                           ccf->worker_processes - 1);

        if (rc != NGX_OK) {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_socket_errno,
                          "sluice: setsockopt(SO_ATTACH_REUSEPORT_CBPF) of "
                          "\"listen %V reuseport\" failed: connections may "
                          "wait for ever", &ls[i].addr_text);
        }
    }

    for (i = 0; i < cycle->listening.nelts; i++) {

        if (ls[i].reuseport && ls[i].type == SOCK_STREAM
            && (ls[i].worker == 0) != ngx_http_sluice_control_owns(&ls[i]))
        {
            ngx_sluice_reuseport_drain(&ls[i]);
        }
    }
}


/* Resets those who came to a socket before the program chose. */

static void
ngx_sluice_reuseport_drain(ngx_listening_t *ls)
{
    ngx_socket_t  s;

    for ( ;; ) {
        s = accept(ls->fd, NULL, NULL);

        if (s == (ngx_socket_t) -1) {
            return;
        }

        ngx_close_socket(s);
    }
}


/* One of so many sockets of the group, from the first on. */

static ngx_int_t
ngx_sluice_reuseport_choose(ngx_listening_t *ls, ngx_uint_t first,
    ngx_uint_t count)
{
    struct sock_fprog   program;
    struct sock_filter  code[] = {
        BPF_STMT(BPF_LD|BPF_W|BPF_ABS, SKF_AD_OFF + SKF_AD_RANDOM),
        BPF_STMT(BPF_ALU|BPF_MOD|BPF_K, (uint32_t) count),
        BPF_STMT(BPF_ALU|BPF_ADD|BPF_K, (uint32_t) first),
        BPF_STMT(BPF_RET|BPF_A, 0),
    };

    program.len = sizeof(code) / sizeof(code[0]);
    program.filter = code;

    return setsockopt(ls->fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
                      sizeof(struct sock_fprog)) == 0 ? NGX_OK : NGX_ERROR;
}
