
/*
 * Birth of the shared memory of images (ngx_sluice_images.h), in the three
 * ways in which a master can come to it: as the events' log, which
 * ngx_sluice_ring.c says more of.
 */


#include "ngx_sluice.h"
#include "ngx_sluice_abi.h"

#include <sys/mman.h>


#define NGX_SLUICE_PAGE_ENV      "SLUICE_IMAGES"
#define NGX_SLUICE_PAGE_MAGIC    0x4547415045434c53ull      /* "SLCEPAGE" */
#define NGX_SLUICE_PAGE_LAYOUT   2             /* grows with each change */

/* "NAME=inode:memfd" and a zero */
#define NGX_SLUICE_PAGE_ENV_SIZE                                              \
    (sizeof(NGX_SLUICE_PAGE_ENV "=:") + NGX_INT64_LEN + NGX_INT32_LEN)


typedef struct {
    uint64_t           magic;
    uint32_t           layout;
    uint32_t           core;               /* layout of what is published */
    uint64_t           size;               /* of all of it, in bytes */
    uint64_t           zero[5];

    _Alignas(64)
    sluice_control_t   control;

    _Alignas(64)
    u_char             page[64];           /* sluice_core_page_size() */
} ngx_sluice_page_t;


static ngx_int_t ngx_sluice_page_adopt(ngx_cycle_t *cycle);
static ngx_int_t ngx_sluice_page_parse(u_char *text, uint64_t *inode, int *fd);
static ngx_int_t ngx_sluice_page_create(ngx_cycle_t *cycle, uint32_t series);
static ngx_sluice_page_t *ngx_sluice_page_map(int fd, size_t size);
static ngx_int_t ngx_sluice_page_name(ngx_cycle_t *cycle, int fd);


/* What memory there is outlives cycles; workers get it by fork. */

static ngx_sluice_page_t  *ngx_sluice_page;
static int                 ngx_sluice_page_fd = -1;

static u_char  ngx_sluice_page_env[NGX_SLUICE_PAGE_ENV_SIZE];


/* What is counted stands behind what is published. */

#define ngx_sluice_page_counts                                                \
    ngx_align(offsetof(ngx_sluice_page_t, page) + sluice_core_page_size(), 64)


/* Runs in the master, before it forks, at the start and at each reload. */

ngx_int_t
ngx_sluice_page_init(ngx_cycle_t *cycle, ngx_sluice_conf_t *conf)
{
    if (ngx_sluice_page == NULL
        && ngx_sluice_page_adopt(cycle) != NGX_OK
        && ngx_sluice_page_create(cycle, (uint32_t) conf->metrics_series)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_sluice_env_keep(cycle, ngx_sluice_page_env);

    return NGX_OK;
}


static ngx_int_t
ngx_sluice_page_adopt(ngx_cycle_t *cycle)
{
    int                 fd;
    char               *text;
    uint64_t            inode;
    struct stat         st;
    ngx_sluice_page_t  *page;

    text = getenv(NGX_SLUICE_PAGE_ENV);

    if (text == NULL
        || ngx_sluice_page_parse((u_char *) text, &inode, &fd) != NGX_OK
        || fstat(fd, &st) == -1
        || (uint64_t) st.st_ino != inode
        || (size_t) st.st_size
           < ngx_sluice_page_counts + sizeof(ngx_sluice_metrics_t))
    {
        /* not a successor, but started by somebody who lives below nginx */
        return NGX_DECLINED;
    }

    page = ngx_sluice_page_map(fd, (size_t) st.st_size);

    if (page
        && page->magic == NGX_SLUICE_PAGE_MAGIC
        && page->layout == NGX_SLUICE_PAGE_LAYOUT
        && page->core == SLUICE_CORE_LAYOUT
        && (uint64_t) st.st_size == page->size
        && ngx_sluice_page_name(cycle, fd) == NGX_OK)
    {
        ngx_sluice_page = page;
        ngx_sluice_page_fd = fd;
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                  "sluice: the old nginx has images of another layout: the "
                  "new one makes its own, once it may write the store");

    if (page) {
        (void) munmap(page, (size_t) st.st_size);
    }

    (void) close(fd);

    return NGX_DECLINED;
}


static ngx_int_t
ngx_sluice_page_parse(u_char *text, uint64_t *inode, int *fd)
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


/* A master whose module cannot do its work must not start: emerg, exit. */

static ngx_int_t
ngx_sluice_page_create(ngx_cycle_t *cycle, uint32_t series)
{
    int                 fd;
    size_t              size;
    ngx_sluice_page_t  *page;

    size = ngx_sluice_page_counts + ngx_sluice_metrics_size(series);

    fd = memfd_create("sluice-images", MFD_ALLOW_SEALING);

    /* a file that cannot shrink cannot kill its readers with SIGBUS */

    if (fd == -1
        || ftruncate(fd, (off_t) size) == -1
        || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK|F_SEAL_GROW|F_SEAL_SEAL) == -1
        || (page = ngx_sluice_page_map(fd, size)) == NULL)
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "sluice: cannot make the shared memory of images");
        return NGX_ERROR;
    }

    page->magic = NGX_SLUICE_PAGE_MAGIC;
    page->layout = NGX_SLUICE_PAGE_LAYOUT;
    page->core = SLUICE_CORE_LAYOUT;
    page->size = size;

    ngx_sluice_page = page;
    ngx_sluice_page_fd = fd;
    ngx_sluice_page_metrics(NULL)->series = series;

    return ngx_sluice_page_name(cycle, fd);
}


static ngx_sluice_page_t *
ngx_sluice_page_map(int fd, size_t size)
{
    void  *p;

    p = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED, fd, 0);

    return p == MAP_FAILED ? NULL : p;
}


static ngx_int_t
ngx_sluice_page_name(ngx_cycle_t *cycle, int fd)
{
    struct stat  st;

    if (fstat(fd, &st) == -1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "sluice: fstat() of the memory of images failed");
        return NGX_ERROR;
    }

    ngx_sprintf(ngx_sluice_page_env, NGX_SLUICE_PAGE_ENV "=%uL:%d%Z",
                (uint64_t) st.st_ino, fd);

    return ngx_sluice_env_set(cycle, ngx_sluice_page_env);
}


/* Where is published what is live; NULL without "sluice_control on". */

sluice_core_page_t *
sluice_images_page(void)
{
    return ngx_sluice_page ? (sluice_core_page_t *) ngx_sluice_page->page
                           : NULL;
}


/*
 * What is counted, and the descriptor of its file; NULL without
 * "sluice_control on".
 */

ngx_sluice_metrics_t *
ngx_sluice_page_metrics(int *fd)
{
    if (ngx_sluice_page == NULL) {
        return NULL;
    }

    if (fd) {
        *fd = ngx_sluice_page_fd;
    }

    return (ngx_sluice_metrics_t *)
               ((u_char *) ngx_sluice_page + ngx_sluice_page_counts);
}


/* NULL without "sluice_control on". */

sluice_control_t *
sluice_control_block(void)
{
    return ngx_sluice_page ? &ngx_sluice_page->control : NULL;
}
