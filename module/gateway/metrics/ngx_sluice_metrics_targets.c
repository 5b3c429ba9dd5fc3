
/*
 * Tries that have failed, by address and reason (ngx_sluice_metrics.h).
 */


#include "ngx_sluice_metrics.h"


static sluice_metrics_target_t *ngx_sluice_metrics_target(
    const ngx_str_t *address);
static ngx_uint_t ngx_sluice_metrics_target_read(
    const sluice_metrics_target_t *target, sluice_metrics_target_t *copy);


void
ngx_sluice_metrics_fail(const ngx_str_t *address, ngx_uint_t reason,
    ngx_uint_t tries)
{
    sluice_metrics_target_t  *target;

    if (address->len == 0 || address->len >= SLUICE_METRICS_ADDRESS) {
        return;
    }

    target = ngx_sluice_metrics_target(address);

    target->failed[reason] += tries;
    target->failed_at = (uint32_t) ngx_time();
}


/* that of an address, or the one that is to be its own */

static sluice_metrics_target_t *
ngx_sluice_metrics_target(const ngx_str_t *address)
{
    ngx_uint_t                i;
    sluice_metrics_target_t  *target, *oldest;

    oldest = ngx_sluice_metrics_shard->targets;

    for (i = 0; i < SLUICE_METRICS_TARGETS; i++) {
        target = &ngx_sluice_metrics_shard->targets[i];

        if (ngx_strncmp(target->address, address->data, address->len) == 0
            && target->address[address->len] == '\0')
        {
            return target;
        }

        if (target->failed_at < oldest->failed_at) {
            oldest = target;
        }
    }

    /* readers look at the version before and after the rest; a death may have
       left it odd */

    __atomic_store_n(&oldest->version, oldest->version | 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);

    ngx_memzero(oldest->address, sizeof(*oldest)
                - offsetof(sluice_metrics_target_t, address));
    ngx_memcpy(oldest->address, address->data, address->len);

    __atomic_store_n(&oldest->version, oldest->version + 1, __ATOMIC_RELEASE);

    return oldest;
}


/*
 * Sums of all shards by address, at most so many.  How many there are.  The
 * time grows with those that have failed in each worker: some ns each.
 */

uint32_t
sluice_metrics_targets(sluice_metrics_target_t *sums, uint32_t size)
{
    uint32_t                 n, k;
    ngx_uint_t               i, j, reason;
    ngx_sluice_metrics_t    *shared;
    sluice_metrics_target_t  copy;

    n = 0;
    shared = ngx_sluice_metrics;

    for (i = 0; shared && i < shared->used; i++) {
        for (j = 0; j < SLUICE_METRICS_TARGETS; j++) {

            if (!ngx_sluice_metrics_target_read(&shared->shards[i].targets[j],
                                                &copy))
            {
                continue;
            }

            for (k = 0; k < n; k++) {
                if (ngx_strcmp(sums[k].address, copy.address) == 0) {
                    break;
                }
            }

            if (k == size) {
                continue;
            }

            if (k == n) {
                sums[n++] = copy;
                continue;
            }

            for (reason = 0; reason < SLUICE_METRICS_REASONS; reason++) {
                sums[k].failed[reason] += copy.failed[reason];
            }
        }
    }

    return n;
}


/* 0: it is nobody's */

static ngx_uint_t
ngx_sluice_metrics_target_read(const sluice_metrics_target_t *target,
    sluice_metrics_target_t *copy)
{
    uint32_t  version;

    version = __atomic_load_n(&target->version, __ATOMIC_ACQUIRE);

    if (version == 0 || (version & 1)) {
        return 0;
    }

    *copy = *target;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);

    return __atomic_load_n(&target->version, __ATOMIC_RELAXED) == version;
}
