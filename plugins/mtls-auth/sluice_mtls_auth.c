
/*
 * What the plugin mtls-auth decides: it asks for a client certificate of one
 * of its CAs (docs/plugins/mtls-auth.md).
 *
 * The handshake takes any certificate, since it comes before the route is
 * known.  So a request for another host than the handshake's is refused: the
 * client is to make a connection for that one.
 */


#include "sluice_mtls_auth.h"


#define SLUICE_MTLS_AUTH_MISDIRECTED  421


static int sluice_mtls_auth_ready(void *data,
    const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory);
static int sluice_mtls_auth_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_mtls_auth_is_host(const sluice_decision_request_t *request);
static int sluice_mtls_auth_check(sluice_mtls_auth_own_t *own,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_mtls_auth_report(sluice_mtls_auth_own_t *own,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);


static const sluice_packed_field_t  sluice_mtls_auth_fields[] = {
    sluice_packed_field(NUMBER, sluice_mtls_auth_t, depth),
    sluice_packed_field(TEXT, sluice_mtls_auth_t, ids),
    sluice_packed_field(TEXT, sluice_mtls_auth_t, crl),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_mtls_auth = {
    "mtls-auth",
    sizeof(sluice_mtls_auth_t),
    sluice_mtls_auth_fields,
    sluice_mtls_auth_ready,
    sluice_mtls_auth_decide,
    NULL
};


static sluice_header_t  sluice_mtls_auth_dn =
    sluice_header_name("X-Client-Cert-DN", "x-client-cert-dn", 0);
static sluice_header_t  sluice_mtls_auth_fingerprint =
    sluice_header_name("X-Client-Cert-Fingerprint",
                       "x-client-cert-fingerprint", 0);


static int
sluice_mtls_auth_ready(void *data, const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory)
{
    sluice_mtls_auth_t  *conf = data;

    (void) source;
    (void) memory;

    return conf->ids.length == 0 || conf->ids.length % SLUICE_MTLS_AUTH_ID
           ? SLUICE_CORE_BAD : SLUICE_CORE_OK;
}


static int
sluice_mtls_auth_decide(void *data, const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    int                      rc;
    sluice_mtls_auth_own_t  *own;

    (void) data;

    rc = sluice_mtls_auth_is_host(request);

    if (rc == SLUICE_FACT_NONE) {
        return sluice_decision_respond(result, SLUICE_MTLS_AUTH_MISDIRECTED,
                                       "The host is another than that of the "
                                       "connection");
    }

    own = request->own;

    if (rc != SLUICE_FACT_OK || own == NULL) {
        return sluice_decision_unknown(result, "the client's certificate");
    }

    /* another connection is with a worker that has them */

    if (own->fresh(own) == SLUICE_FACT_NONE) {
        return sluice_decision_respond(result, SLUICE_MTLS_AUTH_MISDIRECTED,
                                       "The connection is older than the "
                                       "revocation lists");
    }

    rc = own->certificate(own);

    if (rc == SLUICE_FACT_NONE) {
        return sluice_decision_respond(result, 401,
                                       "No required TLS certificate was sent");
    }

    return rc == SLUICE_FACT_OK
           ? sluice_mtls_auth_check(own, request, result)
           : sluice_decision_without(result, rc, "the client's certificate");
}


/* SLUICE_FACT_NONE: the connection was made for another */

static int
sluice_mtls_auth_is_host(const sluice_decision_request_t *request)
{
    int                 rc;
    sluice_core_text_t  name, host;

    rc = sluice_decision_fact(request, SLUICE_ASK_SERVER_NAME, &name);

    if (rc != SLUICE_FACT_OK) {
        return rc == SLUICE_FACT_NONE ? SLUICE_FACT_OK : rc;
    }

    rc = sluice_decision_fact(request, SLUICE_ASK_HOST, &host);

    if (rc == SLUICE_FACT_OK
        && (name.length != host.length
            || memcmp(name.data, host.data, name.length) != 0))
    {
        return SLUICE_FACT_NONE;
    }

    return rc;
}


static int
sluice_mtls_auth_check(sluice_mtls_auth_own_t *own,
    const sluice_decision_request_t *request, sluice_decision_result_t *result)
{
    int  rc;

    rc = own->verify(own);

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_mtls_auth_report(own, request, result);
    }

    switch (rc) {

    case SLUICE_FACT_OK:
        return SLUICE_DECISION_PASS;

    case SLUICE_FACT_NONE:
        return sluice_decision_respond(result, 401,
                                       "TLS certificate failed verification");

    default:
        return sluice_decision_without(result, rc, "the client's certificate");
    }
}


/* In place of what may be there, whoever has said it. */

static int
sluice_mtls_auth_report(sluice_mtls_auth_own_t *own,
    const sluice_decision_request_t *request, sluice_decision_result_t *result)
{
    int                 rc;
    sluice_core_text_t  subject, fingerprint;

    rc = own->describe(own, &subject, &fingerprint);

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_decision_edit(request, result, SLUICE_DECISION_UP_SET,
                                  &sluice_mtls_auth_dn, &subject);
    }

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_decision_edit(request, result, SLUICE_DECISION_UP_SET,
                                  &sluice_mtls_auth_fingerprint, &fingerprint);
    }

    return rc;
}
