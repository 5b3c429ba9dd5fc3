
/*
 * Headers of the PROXY protocol (proxy_protocol.h).
 */


#include "proxy_protocol.h"

#include <arpa/inet.h>
#include <string.h>


#define PROXY_PROTOCOL_LINE   107             /* bytes, with its end */
#define PROXY_PROTOCOL_HEAD   16
#define PROXY_PROTOCOL_PORTS  4

#define PROXY_PROTOCOL_INET   1
#define PROXY_PROTOCOL_INET6  2
#define PROXY_PROTOCOL_UNIX   3

#define PROXY_PROTOCOL_STREAM  1
#define PROXY_PROTOCOL_DGRAM   2


static const char  proxy_protocol_word[] = "PROXY ";
static const char  proxy_protocol_signature[] = "\r\n\r\n\0\r\nQUIT\n";

/* Of both ends, by family; the first: none. */

static const size_t  proxy_protocol_sizes[] = { 0, 12, 36, 216 };


static int
proxy_protocol_begins(const uint8_t *data, size_t size, const char *text,
    size_t length)
{
    return memcmp(data, text, size < length ? size : length) == 0;
}


/*
 * Copies what stands before a byte, and steps behind it.  0: too long, or no
 * such byte.
 */

static int
proxy_protocol_word_of(char *word, size_t size, const char **p,
    const char *last, char end)
{
    size_t       length;
    const char  *found;

    found = memchr(*p, end, (size_t) (last - *p));

    if (found == NULL || (size_t) (found - *p) >= size) {
        return 0;
    }

    length = (size_t) (found - *p);
    memcpy(word, *p, length);
    word[length] = '\0';
    *p = found + 1;

    return memchr(word, '\0', length) == NULL;
}


static int
proxy_protocol_port(uint16_t *port, const char *text)
{
    size_t    i;
    uint32_t  number;

    number = 0;

    for (i = 0; text[i] >= '0' && text[i] <= '9' && i < 5; i++) {
        number = number * 10 + (uint32_t) (text[i] - '0');
    }

    *port = (uint16_t) number;

    return i > 0 && text[i] == '\0' && number <= UINT16_MAX
           && (text[0] != '0' || i == 1);
}


static int
proxy_protocol_line(sluice_proxy_protocol_t *found, const char *p,
    const char *last)
{
    int   family;
    char  protocol[8], ports[2][8];
    char  address[sizeof(struct in6_addr)];

    /* the last is the CR */

    if (strncmp(p, "UNKNOWN\r", 8) == 0 || strncmp(p, "UNKNOWN ", 8) == 0) {
        return 1;
    }

    if (!proxy_protocol_word_of(protocol, sizeof(protocol), &p, last, ' ')
        || !proxy_protocol_word_of(found->client, sizeof(found->client), &p,
                                   last, ' ')
        || !proxy_protocol_word_of(found->server,
                                   sizeof(found->server), &p, last, ' ')
        || !proxy_protocol_word_of(ports[0], sizeof(ports[0]), &p, last, ' ')
        || !proxy_protocol_word_of(ports[1], sizeof(ports[1]), &p, last, '\r')
        || p != last)
    {
        return 0;
    }

    family = strcmp(protocol, "TCP4") == 0 ? AF_INET
           : strcmp(protocol, "TCP6") == 0 ? AF_INET6
           : AF_UNSPEC;

    found->has_addresses = 1;

    return family != AF_UNSPEC
           && inet_pton(family, found->client, address) == 1
           && inet_pton(family, found->server, address) == 1
           && proxy_protocol_port(&found->client_port, ports[0])
           && proxy_protocol_port(&found->server_port, ports[1]);
}


static int
proxy_protocol_read_text(sluice_proxy_protocol_t *found, const uint8_t *data,
    size_t size)
{
    size_t          most;
    const char     *line;
    const uint8_t  *end;

    most = size < PROXY_PROTOCOL_LINE ? size : PROXY_PROTOCOL_LINE;
    end = memchr(data, '\n', most);

    if (end == NULL) {
        found->most = PROXY_PROTOCOL_LINE;
        return size < PROXY_PROTOCOL_LINE ? SLUICE_PROXY_PROTOCOL_MORE
                                          : SLUICE_PROXY_PROTOCOL_OVERSIZED;
    }

    line = (const char *) data + sizeof(proxy_protocol_word) - 1;

    if (end[-1] != '\r'
        || memchr(line, '\r', (size_t) ((const char *) end - line))
           != end - 1
        || !proxy_protocol_line(found, line, (const char *) end))
    {
        return SLUICE_PROXY_PROTOCOL_MALFORMED;
    }

    return (int) (end + 1 - data);
}


static uint16_t
proxy_protocol_number(const uint8_t *p)
{
    return (uint16_t) (p[0] << 8 | p[1]);
}


static void
proxy_protocol_addresses(sluice_proxy_protocol_t *found, unsigned family,
    const uint8_t *p)
{
    int     af;
    size_t  size;

    af = family == PROXY_PROTOCOL_INET ? AF_INET : AF_INET6;
    size = (proxy_protocol_sizes[family] - PROXY_PROTOCOL_PORTS) / 2;

    (void) inet_ntop(af, p, found->client, sizeof(found->client));
    (void) inet_ntop(af, p + size, found->server,
                     sizeof(found->server));

    found->client_port = proxy_protocol_number(p + 2 * size);
    found->server_port = proxy_protocol_number(p + 2 * size + 2);
    found->has_addresses = 1;
}


static int
proxy_protocol_read_binary(sluice_proxy_protocol_t *found,
    const uint8_t *data, size_t size)
{
    size_t    length;
    unsigned  version, command, family, transport;

    if (size < PROXY_PROTOCOL_HEAD) {
        found->most = PROXY_PROTOCOL_HEAD;
        return SLUICE_PROXY_PROTOCOL_MORE;
    }

    version = data[12] >> 4;
    command = data[12] & 0xf;                 /* 0: LOCAL, 1: PROXY */
    family = data[13] >> 4;
    transport = data[13] & 0xf;

    length = proxy_protocol_number(&data[14]);

    if (version != 2 || command > 1 || family > PROXY_PROTOCOL_UNIX
        || transport > PROXY_PROTOCOL_DGRAM)
    {
        return SLUICE_PROXY_PROTOCOL_MALFORMED;
    }

    /* who asks for itself may say anything of families */

    if (command == 1 && length < proxy_protocol_sizes[family]) {
        return SLUICE_PROXY_PROTOCOL_MALFORMED;
    }

    found->most = PROXY_PROTOCOL_HEAD + length;

    if (found->most > SLUICE_PROXY_PROTOCOL_MOST) {
        return SLUICE_PROXY_PROTOCOL_OVERSIZED;
    }

    if (size < found->most) {
        return SLUICE_PROXY_PROTOCOL_MORE;
    }

    if (command == 1 && transport == PROXY_PROTOCOL_STREAM
        && (family == PROXY_PROTOCOL_INET || family == PROXY_PROTOCOL_INET6))
    {
        proxy_protocol_addresses(found, family, &data[PROXY_PROTOCOL_HEAD]);
    }

    return (int) found->most;
}


int
sluice_proxy_protocol_read(sluice_proxy_protocol_t *found,
    const uint8_t *data, size_t size)
{
    memset(found, 0, sizeof(sluice_proxy_protocol_t));

    if (proxy_protocol_begins(data, size, proxy_protocol_word,
                              sizeof(proxy_protocol_word) - 1))
    {
        return proxy_protocol_read_text(found, data, size);
    }

    if (proxy_protocol_begins(data, size, proxy_protocol_signature,
                              sizeof(proxy_protocol_signature) - 1))
    {
        return proxy_protocol_read_binary(found, data, size);
    }

    return SLUICE_PROXY_PROTOCOL_MISSING;
}
