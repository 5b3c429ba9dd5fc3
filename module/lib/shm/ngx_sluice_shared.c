
/*
 * Creates shared memory (ngx_sluice_shared.h).
 */


#include "ngx_sluice_env.h"
#include "ngx_sluice_shared.h"

#include <sys/mman.h>


static ngx_int_t ngx_sluice_shared_parse(u_char *text, uint64_t *inode,
    int *fd);
static ngx_int_t ngx_sluice_shared_map(ngx_sluice_shared_t *shared, int fd,
    size_t size);


ngx_int_t
ngx_sluice_shared_adopt(ngx_sluice_shared_t *shared)
{
    int          fd;
    char        *text;
    uint64_t     inode;
    struct stat  st;

    text = getenv(shared->env);

    if (text == NULL
        || ngx_sluice_shared_parse((u_char *) text, &inode, &fd) != NGX_OK
        || fstat(fd, &st) == -1
        || (uint64_t) st.st_ino != inode)
    {
        /* not a successor, but started by somebody who lives below nginx */
        return NGX_DECLINED;
    }

    if (ngx_sluice_shared_map(shared, fd, (size_t) st.st_size) != NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_sprintf(shared->entry, "%s=%uL:%d%Z", shared->env, inode, fd);

    return NGX_OK;
}


ngx_int_t
ngx_sluice_shared_use(ngx_cycle_t *cycle, const ngx_sluice_shared_use_t *use)
{
    ngx_sluice_shared_t  *shared;

    shared = use->shared;

    if (shared->base == NULL) {
        (void) ngx_sluice_shared_adopt(shared);
    }

    if (shared->base
        && ((!use->any_size && shared->size != use->size)
            || use->attach(shared->base, shared->size) != 0))
    {
        ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0, "%s", use->anew);
        ngx_sluice_shared_drop(shared);
    }

    if (shared->base == NULL) {

        if (ngx_sluice_shared_create(cycle, shared, use->size) != NGX_OK) {
            return NGX_ERROR;
        }

        if (use->init(shared->base, shared->size) != 0
            || use->attach(shared->base, shared->size) != 0)
        {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                          "sluice: cannot make %s", use->what);
            return NGX_ERROR;
        }
    }

    ngx_sluice_env_keep(cycle, shared->entry);

    return NGX_OK;
}


static ngx_int_t
ngx_sluice_shared_parse(u_char *text, uint64_t *inode, int *fd)
{
    u_char     *p;
    ngx_int_t   n;

    p = (u_char *) ngx_strchr(text, ':');
    if (p == NULL) {
        return NGX_ERROR;
    }

    n = ngx_atoi(text, p - text);
    if (n == NGX_ERROR) {
        return NGX_ERROR;
    }

    *inode = n;
    p++;

    n = ngx_atoi(p, ngx_strlen(p));
    if (n == NGX_ERROR || n > NGX_MAX_INT32_VALUE) {
        return NGX_ERROR;
    }

    *fd = (int) n;

    return NGX_OK;
}


ngx_int_t
ngx_sluice_shared_create(ngx_cycle_t *cycle, ngx_sluice_shared_t *shared,
    size_t size)
{
    int          fd;
    struct stat  st;

    fd = memfd_create(shared->name, MFD_ALLOW_SEALING);

    /* a file that cannot shrink cannot kill its readers with SIGBUS */

    if (fd == -1
        || ftruncate(fd, (off_t) size) == -1
        || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK|F_SEAL_GROW|F_SEAL_SEAL) == -1
        || fstat(fd, &st) == -1
        || ngx_sluice_shared_map(shared, fd, size) != NGX_OK)
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "sluice: cannot make the shared memory \"%s\" of %uz "
                      "bytes", shared->name, size);
        return NGX_ERROR;
    }

    ngx_sprintf(shared->entry, "%s=%uL:%d%Z", shared->env,
                (uint64_t) st.st_ino, fd);

    return ngx_sluice_env_set(cycle, shared->entry);
}


static ngx_int_t
ngx_sluice_shared_map(ngx_sluice_shared_t *shared, int fd, size_t size)
{
    void  *p;

    p = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED, fd, 0);

    if (p == MAP_FAILED) {
        return NGX_ERROR;
    }

    shared->base = p;
    shared->size = size;
    shared->fd = fd;

    return NGX_OK;
}


void
ngx_sluice_shared_drop(ngx_sluice_shared_t *shared)
{
    (void) munmap(shared->base, shared->size);
    (void) close(shared->fd);

    shared->base = NULL;
}
