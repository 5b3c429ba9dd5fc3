
/*
 * The kinds of entities and what their fields hold: the one place.
 */


#include "layout.h"


#define N  SLUICE_CORE_NUMBER
#define S  SLUICE_CORE_SLOT
#define O  SLUICE_CORE_OWNER
#define T  SLUICE_CORE_TEXT
#define K  SLUICE_CORE_KEY
#define L  SLUICE_CORE_LIST
#define M  SLUICE_CORE_KEYS
#define H  SLUICE_CORE_HEADERS


const sluice_core_schema_t  sluice_core_schemas[SLUICE_CORE_KINDS] = {

    [SLUICE_CORE_SERVICE] = {
        .types = { N, T, T, T, N, N, N, N, T },
        .has_dependents = 1,
    },

    [SLUICE_CORE_UPSTREAM] = {
        .types = { K, T, N, N, S },
        .refers = { [4] = SLUICE_CORE_CERTIFICATE },
        .has_dependents = 1,
    },

    [SLUICE_CORE_CONSUMER] = {
        .types = { K, T },
        .by_id = 1,
    },

    [SLUICE_CORE_ROUTE] = {
        .types = { S, N, T, L, L, L, H, N, L },
        .refers = { SLUICE_CORE_SERVICE },
    },

    [SLUICE_CORE_TARGET] = {
        .types = { O, T, N },
        .refers = { SLUICE_CORE_UPSTREAM },
        .has_dependents = 1,
    },

    [SLUICE_CORE_CREDENTIAL] = {
        .types = { S, K, N, T, M, N },
        .refers = { SLUICE_CORE_CONSUMER },
        .by_id = 1,
    },

    [SLUICE_CORE_PLUGIN] = {
        .types = { O, O, O, O, T, N, T, N, L },
        .refers = { SLUICE_CORE_CONSUMER, SLUICE_CORE_GROUP,
                    SLUICE_CORE_ROUTE, SLUICE_CORE_SERVICE },
        .owned = 1,
        .has_dependents = 1,
    },

    [SLUICE_CORE_NAME] = {
        .types = { K, L },
        .has_dependents = 1,
    },

    [SLUICE_CORE_GROUP] = {
        .types = { T },
    },

    [SLUICE_CORE_MEMBERSHIP] = {
        .types = { O, S },
        .refers = { SLUICE_CORE_CONSUMER, SLUICE_CORE_GROUP },
    },

    [SLUICE_CORE_CERTIFICATE] = {
        .types = { T, T, T, T },
        .by_id = 1,
        .has_dependents = 1,
    },

    [SLUICE_CORE_CA_CERTIFICATE] = {
        .types = { T },
        .by_id = 1,
        .has_dependents = 1,
    },

    [SLUICE_CORE_SNI] = {
        .types = { S, K },
        .refers = { SLUICE_CORE_CERTIFICATE },
    },

    [SLUICE_CORE_LABEL] = {
        .types = { O, T, T },
        .refers = { SLUICE_CORE_CONSUMER },
    },

    [SLUICE_CORE_ENTITY] = {
        .types = { S, K, N, T, M, N },
        .refers = { SLUICE_CORE_CONSUMER },
        .by_id = 1,
    },
};


int
sluice_core_owner(const sluice_core_record_t *record)
{
    int                          i;
    const sluice_core_schema_t  *schema;

    schema = &sluice_core_schemas[record->kind];

    for (i = 0; i < SLUICE_CORE_FIELDS; i++) {

        if (schema->types[i] == SLUICE_CORE_OWNER
            && record->fields[i] != SLUICE_CORE_NOBODY)
        {
            return i;
        }
    }

    return schema->owned ? SLUICE_CORE_OWNED_BY_ALL : SLUICE_CORE_NO_OWNER;
}


static const char *const  words[] = {
    "ok", "none", "full", "bad", "version", "limit", "pattern", "memory",
    "repeat", "large", "crowded", "foreign", "system", "stale", "traversal",
    "again"
};


const char *
sluice_core_word(int rc)
{
    if (rc > 0 || -rc >= (int) (sizeof(words) / sizeof(words[0]))) {
        return "unknown";
    }

    return words[-rc];
}
