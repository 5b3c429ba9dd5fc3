
/*
 * What a request's path costs: one case a thousand times, from its target to
 * the URI.  make -C test/core cost has callgrind count the instructions.
 */


#include "path.h"
#include "support.h"

#include <string.h>


#define COST_TIMES  1000           /* the Makefile divides by it */
#define COST_SIZE   4096


typedef struct {
    const char   *name;
    const char   *target;
    const char   *base;
    const char   *prefix;
    uint32_t      flags;
} cost_case_t;


static const cost_case_t  cases[] = {

    { "20 bytes, as they are",
      "/api/v1/users/123456", NULL, NULL, 0 },

    { "20 bytes, 7 stripped",
      "/api/v1/users/123456", NULL, "/api/v1", SLUICE_PATH_STRIP },

    { "20 bytes, a service's path",
      "/api/v1/users/123456", "/base", NULL, 0 },

    { "20 bytes, both",
      "/api/v1/users/123456", "/base", "/api/v1", SLUICE_PATH_STRIP },

    { "20 bytes, both, traversal passes",
      "/api/v1/users/123456", "/base", "/api/v1",
      SLUICE_PATH_STRIP|SLUICE_PATH_TRAVERSAL },

    { "20 bytes, and a query",
      "/api/v1/users/123456?a=1&b=22&c=333&d=44", NULL, NULL, 0 },

    { "20 bytes, one encoded",
      "/api/v1/users/%7euser", NULL, NULL, 0 },

    { "20 bytes, a dot segment",
      "/api/v1/users/../123", NULL, NULL, 0 },

    { "100 bytes, as they are",
      "/api/v1/users/123456/orders/2026/invoices/a-rather-long-name-of-a-"
      "document/versions/17/as/portable.pdf", NULL, NULL, 0 },
};


static int path_cost(const cost_case_t *c) __attribute__((noinline));


static int
path_cost(const cost_case_t *c)
{
    char                    normal[COST_SIZE], made[COST_SIZE];
    sluice_core_text_t      target, uri;
    sluice_path_request_t   r;

    target.data = c->target;
    target.length = (uint32_t) strlen(c->target);
    r.base.data = c->base;
    r.base.length = c->base ? (uint32_t) strlen(c->base) : 0;
    r.prefix = c->prefix ? (int32_t) strlen(c->prefix) : -1;
    r.flags = c->flags;

    sluice_path_split(&target, &r.raw, &r.query);
    (void) sluice_path_normalize(&r.raw, normal, sizeof(normal), &r.path);

    return sluice_path_upstream(&r, made, sizeof(made), &uri);
}


/* the case that CASE names by its number; fails where there is none */

int
main(void)
{
    uint64_t  i, n;

    n = test_env("CASE", 0);

    if (n >= sizeof(cases) / sizeof(cases[0])) {
        return 1;
    }

    for (i = 0; i < COST_TIMES; i++) {
        test_check(path_cost(&cases[n]) == SLUICE_CORE_OK, "no uri");
    }

    printf("%s\n", cases[n].name);

    return 0;
}
