
/*
 * The texts of a certificate's fields: PEM of the image, or what a variable of
 * the environment has, {vault://env/NAME} or {vault://env/NAME/KEY}, a member
 * of the JSON object that it holds.  References to vaults are written so by
 * gateway/image/pem.lua, and mean what gateway/config/vault.lua says.
 */


#include "ngx_sluice_certificates.h"
#include "fields.h"


#define NGX_SLUICE_CERTIFICATE_VAULT     "{vault://env/"
#define NGX_SLUICE_CERTIFICATE_VARIABLE  256


static ngx_int_t ngx_sluice_certificate_value_name(
    const sluice_core_text_t *text, char *name, sluice_core_text_t *key);
static BIO *ngx_sluice_certificate_value_member(const char *json,
    const sluice_core_text_t *key);


/*
 * nginx's environment has no other variables of the user than those that may
 * be referred to.
 */

BIO *
ngx_sluice_certificate_value(const sluice_core_found_t *found, int field,
    ngx_log_t *log)
{
    BIO                 *bio;
    char                 name[NGX_SLUICE_CERTIFICATE_VARIABLE];
    const char          *value;
    sluice_core_text_t   text, key;

    text = sluice_core_text(found, field);

    if (text.data == NULL) {
        return NULL;
    }

    if (ngx_sluice_certificate_value_name(&text, name, &key) != NGX_OK) {
        return BIO_new_mem_buf(text.data, (int) text.length);
    }

    value = getenv(name);

    if (value == NULL) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "sluice: a certificate refers to the environment "
                      "variable \"%s\", which is not there", name);
        return NULL;
    }

    if (key.length == 0) {
        return BIO_new_mem_buf(value, -1);
    }

    bio = ngx_sluice_certificate_value_member(value, &key);

    if (bio == NULL) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "sluice: a certificate refers to \"%*s\" in the "
                      "environment variable \"%s\", which has no such text",
                      (size_t) key.length, key.data, name);
    }

    return bio;
}


/* NGX_DECLINED: it is the value itself. */

static ngx_int_t
ngx_sluice_certificate_value_name(const sluice_core_text_t *text, char *name,
    sluice_core_text_t *key)
{
    size_t       n;
    const char  *p, *end;

    n = sizeof(NGX_SLUICE_CERTIFICATE_VAULT) - 1;

    if (text->length <= n
        || ngx_memcmp(text->data, NGX_SLUICE_CERTIFICATE_VAULT, n) != 0)
    {
        return NGX_DECLINED;
    }

    p = text->data + n;
    end = text->data + text->length - 1;        /* the brace */

    for (n = 0; p < end && *p != '/'; p++) {

        if (n == NGX_SLUICE_CERTIFICATE_VARIABLE - 1) {
            break;
        }

        name[n++] = *p == '-' ? '_' : (char) ngx_toupper(*p);
    }

    name[n] = '\0';

    key->data = p < end ? p + 1 : end;
    key->length = (uint32_t) (end - key->data);

    return NGX_OK;
}


static BIO *
ngx_sluice_certificate_value_member(const char *json,
    const sluice_core_text_t *key)
{
    BIO                   *bio;
    char                  *buffer;
    size_t                 length;
    sluice_fields_t        fields;
    sluice_core_text_t     text;
    sluice_fields_name_t   member;

    text.data = json;
    text.length = (uint32_t) ngx_strlen(json);
    member.name = *key;

    if (sluice_fields_open(&fields, SLUICE_FIELDS_JSON, NULL, &text)
        != SLUICE_CORE_OK)
    {
        return NULL;
    }

    sluice_fields_find(&fields, &member, 1);

    if (member.count == 0 || !member.is_text) {
        return NULL;
    }

    bio = BIO_new(BIO_s_mem());
    buffer = OPENSSL_malloc(member.value.length + 1);

    if (bio && buffer) {
        length = sluice_fields_decode(&fields, &member.value, buffer);
        (void) BIO_write(bio, buffer, (int) length);

        /* it may be read again from its beginning */

        BIO_set_flags(bio, BIO_FLAGS_NONCLEAR_RST);
    }

    OPENSSL_clear_free(buffer, member.value.length + 1);

    return bio;
}
