
/*
 * What a plugin decides of a request: the request as the plugin sees it, and
 * what is to be done.  Plain C: nginx asks (ngx_http_sluice_decide.c), and so
 * does whoever judges requests without nginx (judge.h).
 *
 *
 * SYNOPSIS
 *
 *     static int
 *     sluice_hello_decide(void *data,
 *         const sluice_decision_request_t *request,
 *         sluice_decision_result_t *result)
 *     {
 *         sluice_hello_t      *conf = data;
 *         sluice_core_text_t   value;
 *
 *         switch (sluice_decision_header(request, &conf->header, 0, &value)) {
 *
 *         case SLUICE_DECISION_NOT_KNOWN:
 *             return sluice_decision_unknown(result, "a header");
 *
 *         case 0:
 *             return sluice_decision_respond(result, 403, "be polite");
 *
 *         default:
 *             return SLUICE_DECISION_PASS;
 *         }
 *     }
 *
 *
 * THE REQUEST
 *
 * is lazy: nothing is copied or made before a plugin asks for it.  Who answers
 * may not know: a log has no body and not all headers.  A plugin that needs
 * what is not known says so (SLUICE_DECISION_UNKNOWN), and never guesses.
 *
 * A secret's value (a key, a token) may be something else that stands for it,
 * such as its digest: it is passed on to credential() as it is, and compared
 * with nothing.
 *
 *
 * THE RESULT
 *
 * is data, which the caller applies in this order: the upstream's query, body
 * and headers; who the request comes from; the response's headers; the
 * response.  All of it is applied where the plugin responds, too.
 *
 * Its texts are static, or come from the request's memory; only message, type
 * and the names of headers may be the configuration's.
 */


#ifndef SLUICE_DECISION_H_INCLUDED
#define SLUICE_DECISION_H_INCLUDED


#include "core.h"
#include "header_name.h"
#include "packed.h"

#include <string.h>


/* FFI */

/* What a decision is. */

typedef enum {
    SLUICE_DECISION_PASS = 0,
    SLUICE_DECISION_RESPOND,         /* status and message say what */
    SLUICE_DECISION_BODY,            /* ask again when the body is there */
    SLUICE_DECISION_UNKNOWN,         /* of something that is not known */
    SLUICE_DECISION_MEMORY,          /* there is none: answer 500 */
    SLUICE_DECISION_LUA              /* ask again when Lua was asked */
} sluice_decision_e;


/* What a request can be asked for; more come at the end. */

typedef enum {
    SLUICE_ASK_METHOD = 0,
    SLUICE_ASK_SCHEME,               /* "http", "https" */
    SLUICE_ASK_PROTOCOL,             /* "HTTP/1.1" */
    SLUICE_ASK_HOST,                 /* in lower case, without a port */
    SLUICE_ASK_PATH,                 /* normalised */
    SLUICE_ASK_QUERY,                /* without "?", as plugins left it */
    SLUICE_ASK_ADDRESS,              /* of the client, as text */
    SLUICE_ASK_SERVER_NAME,          /* of the TLS handshake */
    SLUICE_ASK_ROUTE,                /* slot and generation: two words */
    SLUICE_ASK_SERVICE,              /* the same */
    SLUICE_ASK_CONSUMER,             /* id */
    SLUICE_ASK_USERNAME,             /* of the consumer */
    SLUICE_ASK_CREDENTIAL,           /* id; of length 0: it has none */
    SLUICE_ASK_BODY,
    SLUICE_ASK_TARGET,               /* path and query, as the client sent
                                        them */
    SLUICE_ASK_AUTHENTICATED_GROUPS, /* by a plugin: a packed list of names
                                        (packed.h) */
    SLUICE_ASK_COUNT
} sluice_ask_e;


/* What is known of it. */

typedef enum {
    SLUICE_FACT_OK = 0,
    SLUICE_FACT_NONE = -1,           /* there is no such thing */
    SLUICE_FACT_UNKNOWN = -2,
    SLUICE_FACT_LATER = -3,          /* the body has to be read first */
    SLUICE_FACT_LARGE = -4,          /* the body is not in memory */
    SLUICE_FACT_UNREADABLE = -5,     /* nor is the configuration: answer 503 */
    SLUICE_FACT_MEMORY = -6,         /* or another failure: answer 500 */
    SLUICE_FACT_LUA = -7             /* Lua has to be asked first */
} sluice_fact_e;


#define SLUICE_DECISION_NOT_KNOWN  -1

#define SLUICE_DECISION_DIGEST     64


/* Who a request comes from: records of the image. */

typedef struct {
    sluice_core_found_t  consumer;
    sluice_core_found_t  credential;
} sluice_decision_who_t;


typedef enum {
    SLUICE_DECISION_NOBODY = 0,      /* as it was before */
    SLUICE_DECISION_CREDENTIAL,      /* who has it */
    SLUICE_DECISION_ANONYMOUS        /* who has none, as this consumer */
} sluice_decision_identity_e;


/* A change of headers beside those that the response is to have. */

typedef enum {
    SLUICE_DECISION_UP_SET = 0,      /* to the upstream: in place of others */
    SLUICE_DECISION_UP_ADD,
    SLUICE_DECISION_UP_REMOVE,
    SLUICE_DECISION_UP_REMOVE_ALIKE, /* and in all spellings of "-" and "_" */
    SLUICE_DECISION_DOWN_ADD,        /* to the client: beside others */
    SLUICE_DECISION_DOWN_CHALLENGE,  /* WWW-Authenticate, which nginx has a
                                        place for: in place of another */
    SLUICE_DECISION_DOWN_REMOVE      /* from what the client gets */
} sluice_decision_edit_e;


typedef struct {
    sluice_header_t     *header;
    sluice_core_text_t   value;
    uint32_t             verb;
    uint32_t             zero;
} sluice_decision_edit_t;


/* How much of a body is read; what is longer is answered so. */

typedef struct {
    int64_t              size;
    sluice_core_text_t   message;        /* static; data NULL: no bound */
    uint32_t             status;
    uint32_t             zero;
} sluice_decision_bound_t;


/* Whether the access log has the request. */

#define SLUICE_DECISION_ALL  ((uint32_t) 1 << 31)

typedef struct {
    uint32_t             is_set;         /* or as it was before */
    uint32_t             share;          /* of SLUICE_DECISION_ALL: of all
                                            requests; one is drawn */
    uint32_t             errors;         /* those of the rest that fail, too */
    uint32_t             zero;
} sluice_decision_sample_t;


/* Without asking for memory. */

#define SLUICE_DECISION_LINES  24
#define SLUICE_DECISION_EDITS  8


typedef struct {
    uint32_t                 status;
    uint32_t                 identity;    /* sluice_decision_identity_e */
    uint32_t                 lines_count;
    uint32_t                 lines_max;
    uint32_t                 edits_count;
    uint32_t                 edits_max;
    sluice_header_line_t    *lines;       /* of the response, in place of all
                                             others of these names */
    sluice_decision_edit_t  *edits;
    sluice_core_text_t       message;     /* data NULL: the status's words */
    sluice_core_text_t       type;        /* data NULL: message is told in a
                                             format that the client accepts;
                                             else it is the body, of this */
    sluice_core_text_t       query;       /* without "?"; data NULL: as is */
    sluice_core_text_t       body;        /* the same */
    sluice_decision_bound_t  bound;       /* where the request passes */
    sluice_core_text_t       note;        /* for the error log */
    sluice_core_text_t       log_name;    /* static; data NULL: none */
    sluice_core_text_t       log_value;   /* for the log entry, under that */
    sluice_decision_sample_t  sample;
    sluice_core_text_t       shared_name;   /* static; data NULL: none */
    sluice_core_text_t       shared_value;  /* for plugins in Lua, under that
                                               in kong.ctx.shared; data NULL:
                                               nil */
    sluice_core_text_t       identifier;  /* of the credential, which the
                                             upstream sees; data NULL: its
                                             id */
    const char              *unknown;     /* what is not known */
    uint32_t                 is_error;    /* the note is one */
    uint32_t                 zero;
    sluice_decision_who_t    who;         /* if identity says so */
    sluice_header_line_t     first_lines[SLUICE_DECISION_LINES];
    sluice_decision_edit_t   first_edits[SLUICE_DECISION_EDITS];
} sluice_decision_result_t;

/* FFI end */


/*
 * Who knows the request.  fact, joined, credential, consumer: a code of
 * sluice_fact_e, value being set where it is SLUICE_FACT_OK.
 */

typedef struct {
    /* One of sluice_ask_e. */
    int    (*fact)(void *data, int ask, sluice_core_text_t *value);

    /* The group-th group of the consumer, from 0, by its name. */
    int    (*group)(void *data, uint32_t group, sluice_core_text_t *name);

    /*
     * The next of what a plugin's kind of entities says of the consumer, such
     * as the name of a group.  next is 0 at first, and where to go on
     * afterwards.
     */
    int    (*label)(void *data, const sluice_core_text_t *kind,
                    uint32_t *next, sluice_core_text_t *name);

    /*
     * How many lines a header has, and the index-th of them, from 0; or
     * SLUICE_DECISION_NOT_KNOWN.  The name is in lower case.
     */
    int    (*header)(void *data, const sluice_core_text_t *name,
                     uint32_t index, sluice_core_text_t *value);

    /* What all its lines say together; the name has "_" in place of "-". */
    int    (*joined)(void *data, const sluice_core_text_t *name,
                     sluice_core_text_t *value);

    /*
     * Whose a credential is, by its kind and its key; of one that has expired
     * SLUICE_FACT_NONE.
     */
    int    (*credential)(void *data, const sluice_core_text_t *kind,
                         const sluice_core_text_t *key,
                         sluice_decision_who_t *who);

    /* A consumer by its id or its name. */
    int    (*consumer)(void *data, const sluice_core_text_t *name,
                       sluice_core_found_t *consumer);

    /*
     * A digest ("sha1", "sha256" ...) of several texts, one behind the other,
     * or with a key their HMAC (RFC 2104).  out has room for
     * SLUICE_DECISION_DIGEST bytes.  Their number; or SLUICE_FACT_NONE: no
     * such digest; _UNKNOWN, _MEMORY.
     */
    int    (*digest)(void *data, const char *name,
                     const sluice_core_text_t *key,
                     const sluice_core_text_t *texts, uint32_t count,
                     unsigned char *out);

    /* As long as the request lives; NULL: there is none. */
    void  *(*allocate)(void *data, size_t size);
} sluice_decision_calls_t;


typedef struct {
    const sluice_decision_calls_t  *calls;
    void                           *data;    /* of calls */
    void                           *own;     /* what else the plugin's header
                                                asks for; NULL: not known */
    int64_t                         now;     /* seconds since 1970 */
} sluice_decision_request_t;


/* Where a configuration comes from. */

typedef struct {
    sluice_core_text_t   packed;
    uint32_t             slot;
    uint32_t             generation;
} sluice_decision_source_t;


/* plugins/<name>/sluice_<name>.c has one, named sluice_<name>. */

typedef struct {
    const char                   *name;
    size_t                        size;      /* of a configuration */
    const sluice_packed_field_t  *fields;    /* what its pack() writes */

    /*
     * Makes the rest of a configuration whose fields were read.  NULL: there
     * is none.  SLUICE_CORE_OK, _BAD, _MEMORY.
     */
    int                         (*ready)(void *conf,
                                    const sluice_decision_source_t *source,
                                    const sluice_packed_memory_t *memory);

    /* sluice_decision_e.  NULL: every request passes. */
    int                         (*decide)(void *conf,
                                    const sluice_decision_request_t *request,
                                    sluice_decision_result_t *result);

    /*
     * What the head of the response gets, whoever has made it: the upstream,
     * a plugin, the gateway.  Of a request that was refused before decide()
     * ran, too: by the configuration of its route, or without a route by one
     * that is bound to nothing.  The result's lines take the place of the
     * upstream's.  SLUICE_DECISION_PASS, _UNKNOWN, _MEMORY.  NULL: nothing.
     */
    int                         (*head)(void *conf,
                                    const sluice_decision_request_t *request,
                                    sluice_decision_result_t *result);
} sluice_decision_plugin_t;


/* All there are, behind them NULL: made at build (module/decisions.awk). */

extern const sluice_decision_plugin_t *const  sluice_decisions[];


/*
 * Reads a configuration into conf.  SLUICE_CORE_OK; _BAD: its bytes are of
 * another version; _MEMORY.
 */
int sluice_decision_compile(const sluice_decision_plugin_t *plugin,
    const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory, void *conf);

/*
 * Sets a header of the response, once each; control characters of the value
 * are escaped by "%".  SLUICE_FACT_OK, _MEMORY.
 */
int sluice_decision_set(const sluice_decision_request_t *request,
    sluice_decision_result_t *result, sluice_header_t *header,
    const sluice_core_text_t *value);

/* Adds another change of headers.  SLUICE_FACT_OK, _MEMORY. */
int sluice_decision_edit(const sluice_decision_request_t *request,
    sluice_decision_result_t *result, int verb, sluice_header_t *header,
    const sluice_core_text_t *value);

/* A copy in the request's memory; data NULL: there is none. */
sluice_core_text_t sluice_decision_copy(
    const sluice_decision_request_t *request, const sluice_core_text_t *text);


/* Before a decision. */

static inline void
sluice_decision_begin(sluice_decision_result_t *result)
{
    memset(result, 0, offsetof(sluice_decision_result_t, who));
    result->lines = result->first_lines;
    result->lines_max = SLUICE_DECISION_LINES;
    result->edits = result->first_edits;
    result->edits_max = SLUICE_DECISION_EDITS;
}


static inline int
sluice_decision_fact(const sluice_decision_request_t *request, int ask,
    sluice_core_text_t *value)
{
    return request->calls->fact(request->data, ask, value);
}


static inline int
sluice_decision_header(const sluice_decision_request_t *request,
    const sluice_core_text_t *name, uint32_t index, sluice_core_text_t *value)
{
    return request->calls->header(request->data, name, index, value);
}


static inline void *
sluice_decision_allocate(const sluice_decision_request_t *request, size_t size)
{
    return request->calls->allocate(request->data, size);
}


/* What decide() returns. */

static inline int
sluice_decision_respond(sluice_decision_result_t *result, uint32_t status,
    const char *message)
{
    result->status = status;
    result->message.data = message;
    result->message.length = message ? (uint32_t) strlen(message) : 0;

    return SLUICE_DECISION_RESPOND;
}


/*
 * A bound of the body, for a request that passes: where the body is longer,
 * reading it ends, and the request is answered so.
 */

static inline void
sluice_decision_bound(sluice_decision_result_t *result, int64_t size,
    uint32_t status, const char *message)
{
    result->bound.size = size;
    result->bound.status = status;
    result->bound.message.data = message;
    result->bound.message.length = (uint32_t) strlen(message);
}


/* What the log entry has of the request, beside the gateway's own. */

static inline void
sluice_decision_log(sluice_decision_result_t *result,
    const sluice_core_text_t *name, const sluice_core_text_t *value)
{
    result->log_name = *name;
    result->log_value = *value;
}


/* What plugins in Lua read of the request in kong.ctx.shared. */

static inline void
sluice_decision_share(sluice_decision_result_t *result,
    const sluice_core_text_t *name, const sluice_core_text_t *value)
{
    result->shared_name = *name;
    result->shared_value = *value;
}


static inline int
sluice_decision_unknown(sluice_decision_result_t *result, const char *what)
{
    result->unknown = what;

    return SLUICE_DECISION_UNKNOWN;
}


/* For a fact that is neither there nor absent; what: in case of unknown. */

static inline int
sluice_decision_without(sluice_decision_result_t *result, int fact,
    const char *what)
{
    switch (fact) {

    case SLUICE_FACT_LATER:
        return SLUICE_DECISION_BODY;

    case SLUICE_FACT_LUA:
        return SLUICE_DECISION_LUA;

    case SLUICE_FACT_UNREADABLE:
        return sluice_decision_respond(result, 503,
                                       "the configuration cannot be read");

    case SLUICE_FACT_UNKNOWN:
        return sluice_decision_unknown(result, what);

    default:
        return SLUICE_DECISION_MEMORY;
    }
}


#endif /* SLUICE_DECISION_H_INCLUDED */
