
/*
 * Memory that all processes of this nginx share: a memfd, which the first
 * master makes before it forks, keeps over reloads and hands to the master
 * that it executes at a binary upgrade, by a variable of the environment
 * (ngx_sluice_env.c).
 */


#ifndef NGX_SLUICE_SHARED_H_INCLUDED
#define NGX_SLUICE_SHARED_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>


#define NGX_SLUICE_SHARED_ENTRY  64


/* Lives outside any cycle; all but env and name is zero before it is made. */

typedef struct {
    const char  *env;                      /* at most 30 bytes */
    const char  *name;                     /* in /proc and in messages */
    void        *base;                     /* NULL: there is none */
    size_t       size;
    int          fd;
    u_char       entry[NGX_SLUICE_SHARED_ENTRY];   /* "NAME=inode:fd" */
} ngx_sluice_shared_t;


/*
 * Maps what the master before us has left, whatever it holds: who calls looks
 * at it, and drops it if it is no use.  NGX_OK; NGX_DECLINED: there is none.
 */
ngx_int_t ngx_sluice_shared_adopt(ngx_sluice_shared_t *shared);

/*
 * Makes it, zeroed.  NGX_ERROR: it cannot, which is logged as emerg: a master
 * whose module cannot do its work must not start.
 */
ngx_int_t ngx_sluice_shared_create(ngx_cycle_t *cycle,
    ngx_sluice_shared_t *shared, size_t size);

/*
 * Of what is always there: adopts or makes it, and looks at it, in the master,
 * before it forks, at the start and at each reload.  What does not fit is made
 * anew.  attach and init return 0, or the memory is of no use.
 */

typedef struct {
    ngx_sluice_shared_t  *shared;
    size_t                size;
    ngx_uint_t            any_size;        /* another one is as good */
    const char           *anew;            /* what is lost then */
    const char           *what;            /* it is, if it cannot be made */
    int                 (*init)(void *base, size_t size);
    int                 (*attach)(void *base, size_t size);
} ngx_sluice_shared_use_t;

ngx_int_t ngx_sluice_shared_use(ngx_cycle_t *cycle,
    const ngx_sluice_shared_use_t *use);

/* Lets it go; processes that were forked before keep theirs. */
void ngx_sluice_shared_drop(ngx_sluice_shared_t *shared);


#endif /* NGX_SLUICE_SHARED_H_INCLUDED */
