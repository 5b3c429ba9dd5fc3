
/*
 * What the plugin key-auth decides: it asks for a key that belongs to a
 * consumer (docs/plugins/key-auth.md).
 */


#include "sluice_key_auth.h"
#include "authenticate.h"


static int sluice_key_auth_ready(void *data,
    const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory);
static int sluice_key_auth_ready_name(const sluice_core_text_t *plain,
    const sluice_packed_memory_t *memory, sluice_key_auth_name_t *name);
static int sluice_key_auth_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);


static const sluice_packed_field_t  sluice_key_auth_fields[] = {
    sluice_packed_field(NUMBER, sluice_key_auth_t, flags),
    sluice_packed_field(TEXT, sluice_key_auth_t, anonymous),
    sluice_packed_field(TEXT, sluice_key_auth_t, challenge),
    sluice_packed_field(LIST, sluice_key_auth_t, key_names),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_key_auth = {
    "key-auth",
    sizeof(sluice_key_auth_t),
    sluice_key_auth_fields,
    sluice_key_auth_ready,
    sluice_key_auth_decide,
    NULL
};


static const sluice_core_text_t  sluice_key_auth_kind = {
    "keyauth_credentials", sizeof("keyauth_credentials") - 1
};


static int
sluice_key_auth_ready(void *data, const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory)
{
    sluice_key_auth_t  *conf = data;

    int       rc;
    uint32_t  i;

    (void) source;

    conf->names = memory->allocate(memory->data,
                                   (conf->key_names.count + (size_t) 1)
                                   * sizeof(sluice_key_auth_name_t));
    if (conf->names == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    for (i = 0; i < conf->key_names.count; i++) {
        rc = sluice_key_auth_ready_name(&conf->key_names.texts[i], memory,
                                        &conf->names[i]);
        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    return SLUICE_CORE_OK;
}


static int
sluice_key_auth_ready_name(const sluice_core_text_t *plain,
    const sluice_packed_memory_t *memory, sluice_key_auth_name_t *name)
{
    char      c, *lowcase, *dashed;
    uint32_t  i;

    if (plain->data == NULL) {
        return SLUICE_CORE_BAD;
    }

    lowcase = memory->allocate(memory->data, 2 * (size_t) plain->length + 1);
    if (lowcase == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    dashed = lowcase + plain->length;

    name->plain = *plain;
    name->lowcase.data = lowcase;
    name->lowcase.length = plain->length;
    name->dashed.data = dashed;
    name->dashed.length = 0;

    for (i = 0; i < plain->length; i++) {
        c = plain->data[i];

        if (c >= 'A' && c <= 'Z') {
            c |= 0x20;
        }

        if (c == '_') {
            name->dashed.length = plain->length;
        }

        lowcase[i] = c;
        dashed[i] = c == '_' ? '-' : c;
    }

    name->header.name = (unsigned char *) lowcase;
    name->header.lowcase = (unsigned char *) lowcase;
    name->header.length = plain->length;
    name->header.own = 0;
    sluice_header_name_hash(&name->header);

    return SLUICE_CORE_OK;
}


/* with an anonymous consumer, several such plugins mean: one is enough */

static int
sluice_key_auth_decide(void *data, const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    sluice_key_auth_t  *conf = data;

    int                  rc, hidden;
    const char          *words;
    sluice_core_text_t   key;

    result->unknown = "the method, or who has been authenticated";

    rc = sluice_authenticate_exempt(request, &conf->anonymous,
                                    conf->flags & SLUICE_KEY_AUTH_PREFLIGHT);

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_key_auth_hide(conf, request, result);

        return rc == SLUICE_FACT_OK
               ? SLUICE_DECISION_PASS
               : sluice_decision_without(result, rc, "the body");
    }

    if (rc == SLUICE_FACT_NONE) {
        rc = sluice_key_auth_find(conf, request, result, &key, &words);
    }

    if (rc == SLUICE_FACT_OK
        || (rc == SLUICE_FACT_NONE && conf->anonymous.data))
    {
        hidden = sluice_key_auth_hide(conf, request, result);

        if (hidden != SLUICE_FACT_OK) {
            rc = hidden;
        }
    }

    if (rc == SLUICE_FACT_OK) {
        words = "Unauthorized";
        rc = sluice_authenticate_find(request, &sluice_key_auth_kind, &key,
                                      result);

        if (rc == SLUICE_FACT_OK) {
            return sluice_authenticate_pass(result);
        }
    }

    if (rc != SLUICE_FACT_NONE) {
        return sluice_decision_without(result, rc, result->unknown);
    }

    return sluice_authenticate_without(request, &conf->anonymous,
                                       &conf->challenge, words, result);
}
