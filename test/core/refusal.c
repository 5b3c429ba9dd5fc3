
/*
 * The gateway's own refusals beside a list of them, for all facts there are.
 */


#include "authority.h"
#include "make.h"
#include "refusal.h"

#include <limits.h>
#include <stdlib.h>


typedef struct {
    int          rc;
    uint32_t     status;       /* 0: it passes */
    const char  *message;
} code_t;


static const code_t  codes[] = {
    { SLUICE_CORE_OK, 0, NULL },
    { SLUICE_CORE_NONE, 0, NULL },
    { SLUICE_CORE_FULL, 503, "the configuration cannot be read" },
    { SLUICE_CORE_BAD, 503, "the configuration cannot be read" },
    { SLUICE_CORE_VERSION, 503, "the configuration cannot be read" },
    { SLUICE_CORE_LIMIT, 500, NULL },
    { SLUICE_CORE_PATTERN, 500, NULL },
    { SLUICE_CORE_MEMORY, 500, NULL },
    { SLUICE_CORE_REPEAT, 503, "the configuration cannot be read" },
    { SLUICE_CORE_LARGE, 400, NULL },
    { SLUICE_CORE_CROWDED, 503, "the configuration cannot be read" },
    { SLUICE_CORE_FOREIGN, 503, "the configuration cannot be read" },
    { SLUICE_CORE_SYSTEM, 503, "the configuration cannot be read" },
    { SLUICE_CORE_STALE, 503, "the configuration cannot be read" },
    { SLUICE_CORE_TRAVERSAL, 400, NULL },
    { SLUICE_CORE_AGAIN, 500, NULL },
    { INT_MIN, 503, "the configuration cannot be read" },
    { 1, 503, "the configuration cannot be read" }
};


static int
is_text(const sluice_core_text_t *text, const char *words)
{
    if (words == NULL) {
        return text->data == NULL && text->length == 0;
    }

    return text->data && text->length == strlen(words)
           && memcmp(text->data, words, text->length) == 0;
}


/* A refusal is written as a whole; what passes leaves it as it is. */

static void
check(int refused, const sluice_refusal_t *refusal, uint32_t status,
    const char *message)
{
    sluice_refusal_t  untouched;

    memset(&untouched, 0x5a, sizeof(untouched));

    if (status == 0) {
        test_check(refused == 0, "%u, not passed", refusal->status);
        test_check(memcmp(refusal, &untouched, sizeof(untouched)) == 0,
                   "written");
        return;
    }

    test_check(refused == 1 && refusal->status == status, "%d %u, not %u",
               refused, refusal->status, status);
    test_check(is_text(&refusal->message, message), "not %s",
               message ? message : "nothing");
}


static sluice_refusal_t *
fresh(sluice_refusal_t *refusal)
{
    return memset(refusal, 0x5a, sizeof(sluice_refusal_t));
}


static void
check_nothing_more(const sluice_refusal_t *refusal)
{
    int  i;

    test_check(is_text(&refusal->upgrade, NULL), "an Upgrade");

    for (i = 0; i < SLUICE_REFUSAL_PARTS; i++) {
        test_check(is_text(&refusal->location[i], NULL), "a Location");
    }
}


static void
check_codes(void)
{
    int               rc;
    size_t            i;
    sluice_refusal_t  refusal;

    for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        rc = sluice_refusal_of_code(codes[i].rc, fresh(&refusal));
        check(rc, &refusal, codes[i].status, codes[i].message);

        if (rc) {
            check_nothing_more(&refusal);
        }
    }
}


/* All sets of faults: the first counts. */

static void
check_heads(void)
{
    int               rc;
    uint32_t          faults;
    sluice_refusal_t  refusal;

    for (faults = 0; faults < 2 * SLUICE_FAULT_TRAVERSAL; faults++) {
        rc = sluice_refusal_of_head(faults, fresh(&refusal));

        if (faults == 0) {
            check(rc, &refusal, 0, NULL);
            continue;
        }

        check(rc, &refusal,
              (faults & -faults) == SLUICE_FAULT_LINES ? 494 : 400, NULL);
        check_nothing_more(&refusal);

        test_check(strcmp(refusal.note,
                          faults & SLUICE_FAULT_COLON
                          ? "client sent header line without colon"
                          : faults & SLUICE_FAULT_AUTHORITY
                          ? "client sent invalid authority"
                          : faults & SLUICE_FAULT_LINES
                          ? "client sent too many header lines"
                          : faults & SLUICE_FAULT_OPTIONS
                          ? "client sent too many names in Connection"
                          : "client sent an encoded path traversal") == 0,
                   "%s", refusal.note);
    }
}


typedef struct {
    const char  *text;
    const char  *port;         /* NULL: it is no authority */
} authority_t;


static const authority_t  authorities[] = {
    { "", "" },
    { "a.example", "" },
    { "a.example:", "" },
    { "a.example:80", "80" },
    { "a.example:00080", "80" },
    { "a.example:0", "0" },
    { "a.example:000", "0" },
    { "a.example:65535", "65535" },
    { "a.example:65536", NULL },
    { "a.example:99999", NULL },
    { "a.example:100000", NULL },
    { "a.example:8 ", NULL },
    { "a.example:+8", NULL },
    { "a.example:8:9", NULL },
    { "a.example::8", NULL },
    { "a%41-._~!$&'()*+,;=:1", "1" },
    { "[::1]", "" },
    { "[::1]:", "" },
    { "[::1]:81", "81" },
    { "[v1.a:b]:81", "81" },
    { "[::1]81", NULL },
    { "[::1", NULL },
    { "[::1:81", NULL },
    { "[", NULL },
    { "[]", "" },
    { "[%41]", NULL },
    { "a]", NULL },
    { "::1", NULL },
    { "a@b", NULL },
    { "a/b", NULL },
    { "a?b", NULL },
    { "a#b", NULL },
    { "a b", NULL },
    { "a\\b", NULL },
    { "a\tb", NULL },
    { "a\x7f", NULL },
    { "a\xc3\xa4", NULL }
};


static void
check_authorities(void)
{
    int                  rc;
    char                *own;
    size_t               i, length;
    sluice_core_text_t   text, port;

    for (i = 0; i < sizeof(authorities) / sizeof(authorities[0]); i++) {

        /* without a byte behind it, for ASan */

        length = strlen(authorities[i].text);
        own = malloc(length + (length == 0));
        test_check(own != NULL, "no memory");
        memcpy(own, authorities[i].text, length);

        text.data = own;
        text.length = (uint32_t) length;

        rc = sluice_authority_port(&text, &port);

        test_check(rc == (authorities[i].port != NULL), "%s: %d",
                   authorities[i].text, rc);
        test_check(rc == 0
                   || (port.length == strlen(authorities[i].port)
                       && memcmp(port.data, authorities[i].port, port.length)
                          == 0),
                   "%s: another port", authorities[i].text);
        free(own);
    }
}


static void
check_sizes(void)
{
    int               rc;
    size_t            i, j;
    sluice_refusal_t  refusal;
    const int64_t     sizes[] = { 0, 1, 2, 1048576, 1048577, INT64_MAX };

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        rc = sluice_refusal_of_size(-1, sizes[i], fresh(&refusal));
        check(rc, &refusal, 0, NULL);

        for (j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
            rc = sluice_refusal_of_size(sizes[i], sizes[j], fresh(&refusal));
            check(rc, &refusal, j > 0 && i > j ? 413 : 0, NULL);
        }
    }
}


static void
check_route(const sluice_refusal_route_t *facts)
{
    int               rc;
    uint32_t          code;
    sluice_refusal_t  refusal;

    code = facts->flags >> 8 & 7;
    rc = sluice_refusal_of_route(facts, fresh(&refusal));

    if (facts->route == SLUICE_CORE_NOBODY) {
        check(rc, &refusal, 404, "no Route matched with those values");
        check_nothing_more(&refusal);

    } else if (!(facts->flags & 0x10) || facts->is_https) {
        check(rc, &refusal, 0, NULL);

    } else if (code >= 1 && code <= 4) {
        check(rc, &refusal,
              code == 1 ? 301 : code == 2 ? 302 : code == 3 ? 307 : 308, NULL);
        test_check(is_text(&refusal.upgrade, NULL), "an Upgrade");
        test_check(is_text(&refusal.location[0], "https://")
                   && refusal.location[1].data == facts->host.data
                   && refusal.location[1].length == facts->host.length
                   && refusal.location[2].data == facts->target.data
                   && refusal.location[2].length == facts->target.length,
                   "another Location");

    } else {
        check(rc, &refusal, 426, "Please use HTTPS protocol");
        test_check(is_text(&refusal.upgrade, facts->is_http2 ? NULL
                                             : "TLS/1.2, HTTP/1.1"),
                   "another Upgrade");
        test_check(is_text(&refusal.location[0], NULL), "a Location");
    }
}


static void
check_routes(void)
{
    uint32_t                 flags, i;
    sluice_refusal_route_t   facts;

    for (flags = 0; flags < 0x1000; flags++) {

        for (i = 0; i < 8; i++) {
            facts.route = i & 1 ? SLUICE_CORE_NOBODY : flags;
            facts.flags = flags;
            facts.is_https = i >> 1 & 1;
            facts.is_http2 = i >> 2;
            facts.host.data = "a.x";
            facts.host.length = flags % 4;
            facts.target.data = "/a?b";
            facts.target.length = flags % 5;
            check_route(&facts);
        }
    }
}


static void
check_services(void)
{
    int                        rc;
    uint32_t                   i;
    const char                *words;
    sluice_refusal_t           refusal;
    sluice_refusal_service_t   facts;

    for (i = 0; i < 32; i++) {
        facts.service = i & 1 ? SLUICE_CORE_NOBODY : i;
        facts.unusable = i >> 1 & 1;
        facts.is_upstream = i >> 2 & 1;
        facts.targets = (i >> 3 & 1) * 7;
        facts.no_turn = i >> 4;

        words = "name resolution failed";

        if (facts.is_upstream) {
            words = "failure to get a peer from the ring-balancer";
        }

        if (facts.targets) {
            words = NULL;
        }

        if (facts.unusable) {
            words = "a certificate of the service cannot be used";
        }

        if (i & 1) {
            words = "no Service found with those values";
        }

        rc = sluice_refusal_of_service(&facts, fresh(&refusal));
        check(rc, &refusal, words || facts.no_turn ? 503 : 0, words);

        if (rc) {
            check_nothing_more(&refusal);
        }
    }
}


int
main(void)
{
    check_codes();
    check_heads();
    check_authorities();
    check_sizes();
    check_routes();
    check_services();

    printf("refusal: all facts\n");

    return 0;
}
