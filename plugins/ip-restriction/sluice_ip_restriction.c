
/*
 * What the plugin ip-restriction decides: whether the address of the client is
 * one that may pass (docs/plugins/ip-restriction.md).
 */


#include "sluice_ip_restriction.h"

#include <arpa/inet.h>


#define SLUICE_IP_RESTRICTION_MAPPED  12     /* bytes before an IPv4 address */

#define SLUICE_IP_RESTRICTION_WORDS  "IP address not allowed: "


/* A client's; IPv4 that comes as IPv6 (RFC 4291, 2.5.5.2) is both. */

typedef struct {
    unsigned char   bytes[SLUICE_IP_RESTRICTION_IPV6];
    unsigned char  *ipv4;                    /* among the bytes; or NULL */
    int             is_ipv6;
} sluice_ip_restriction_address_t;


static int sluice_ip_restriction_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_ip_restriction_read(const sluice_core_text_t *text,
    sluice_ip_restriction_address_t *address);
static int sluice_ip_restriction_in(const sluice_ip_restriction_list_t *list,
    const sluice_ip_restriction_address_t *address);
static int sluice_ip_restriction_refuse(const sluice_ip_restriction_t *conf,
    const sluice_decision_request_t *request,
    const sluice_core_text_t *address, sluice_decision_result_t *result);


static const sluice_packed_field_t  sluice_ip_restriction_fields[] = {
    sluice_packed_field(NUMBER, sluice_ip_restriction_t, status),
    sluice_packed_field(NUMBER, sluice_ip_restriction_t, is_allow_given),
    sluice_packed_field(TEXT, sluice_ip_restriction_t, message),
    sluice_packed_field(TEXT, sluice_ip_restriction_t, allow.ipv4),
    sluice_packed_field(TEXT, sluice_ip_restriction_t, allow.ipv6),
    sluice_packed_field(TEXT, sluice_ip_restriction_t, deny.ipv4),
    sluice_packed_field(TEXT, sluice_ip_restriction_t, deny.ipv6),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_ip_restriction = {
    "ip-restriction",
    sizeof(sluice_ip_restriction_t),
    sluice_ip_restriction_fields,
    NULL,
    sluice_ip_restriction_decide,
    NULL
};


static int
sluice_ip_restriction_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    sluice_ip_restriction_t  *conf = data;

    int                              rc;
    sluice_core_text_t               text;
    sluice_ip_restriction_address_t  address;

    rc = sluice_decision_fact(request, SLUICE_ASK_ADDRESS, &text);

    if (rc != SLUICE_FACT_OK && rc != SLUICE_FACT_NONE) {
        return sluice_decision_without(result, rc, "the client's address");
    }

    if (rc == SLUICE_FACT_NONE
        || !sluice_ip_restriction_read(&text, &address))
    {
        return sluice_decision_respond(result, 403,
            "Cannot identify the client IP address, unix domain sockets are "
            "not supported.");
    }

    if (sluice_ip_restriction_in(&conf->deny, &address)
        || (conf->is_allow_given
            && !sluice_ip_restriction_in(&conf->allow, &address)))
    {
        return sluice_ip_restriction_refuse(conf, request, &text, result);
    }

    return SLUICE_DECISION_PASS;
}


static int
sluice_ip_restriction_read(const sluice_core_text_t *text,
    sluice_ip_restriction_address_t *address)
{
    char  copy[INET6_ADDRSTRLEN];

    static const unsigned char  mapped[SLUICE_IP_RESTRICTION_MAPPED] = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff
    };

    if (text->length >= sizeof(copy)) {
        return 0;
    }

    memcpy(copy, text->data, text->length);
    copy[text->length] = '\0';

    address->is_ipv6 = 0;
    address->ipv4 = address->bytes;

    if (inet_pton(AF_INET, copy, address->bytes) == 1) {
        return 1;
    }

    address->is_ipv6 = 1;
    address->ipv4 = NULL;

    if (inet_pton(AF_INET6, copy, address->bytes) != 1) {
        return 0;
    }

    if (memcmp(address->bytes, mapped, sizeof(mapped)) == 0) {
        address->ipv4 = address->bytes + sizeof(mapped);
    }

    return 1;
}


static int
sluice_ip_restriction_in(const sluice_ip_restriction_list_t *list,
    const sluice_ip_restriction_address_t *address)
{
    if (address->ipv4
        && sluice_ip_restriction_has(&list->ipv4, address->ipv4,
                                     SLUICE_IP_RESTRICTION_IPV4))
    {
        return 1;
    }

    return address->is_ipv6
           && sluice_ip_restriction_has(&list->ipv6, address->bytes,
                                        SLUICE_IP_RESTRICTION_IPV6);
}


static int
sluice_ip_restriction_refuse(const sluice_ip_restriction_t *conf,
    const sluice_decision_request_t *request,
    const sluice_core_text_t *address, sluice_decision_result_t *result)
{
    char          *text;
    const size_t   words = sizeof(SLUICE_IP_RESTRICTION_WORDS) - 1;

    text = sluice_decision_allocate(request, words + address->length);
    if (text == NULL) {
        return SLUICE_DECISION_MEMORY;
    }

    memcpy(text, SLUICE_IP_RESTRICTION_WORDS, words);
    memcpy(text + words, address->data, address->length);

    result->note.data = text;
    result->note.length = (uint32_t) (words + address->length);

    result->status = conf->status;
    result->message = conf->message.data ? conf->message : result->note;

    return SLUICE_DECISION_RESPOND;
}
