/*
 * A load generator of TLS connections: each makes one request, and ends.
 *
 *     handshake <full|resumed> <address> <port> <file> <connections> <seconds>
 *
 * The file has whole request heads, one after the other; the name that the
 * handshake asks for is that of the Host header.  "full": any of the requests
 * in turn, and nothing is kept of a connection.  "resumed": each of the
 * connections at a time has a request of its own, and its next one resumes the
 * session of the last; where the server does not, that is counted as a bad
 * status.  Answers need a Content-Length.  Prints the line that wrk.lua
 * prints; the latency is from the connect to the end of the answer.
 */

#define _GNU_SOURCE

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HS_BUFFER        16384
#define HS_MAX_THREADS   1000
#define HS_MAX_TIMES     1000000
#define HS_TIMEOUT_S     10


typedef struct {
    const char  *start;
    size_t       length;
    char         name[256];
} hs_request_t;


typedef struct {
    pthread_t     id;
    size_t        first;         /* its own request */
    SSL_SESSION  *session;
} hs_thread_t;


typedef enum {
    HS_DONE = 0,
    HS_CONNECT,
    HS_READ,
    HS_WRITE,
    HS_STATUS,
    HS_OUTCOMES
} hs_outcome_t;


static SSL_CTX             *hs_ctx;
static struct sockaddr_in   hs_address;
static hs_request_t        *hs_requests;
static size_t               hs_count;
static bool                 hs_resumed;
static uint64_t             hs_deadline_ns;
static atomic_size_t        hs_next;
static atomic_uint_fast64_t hs_outcomes[HS_OUTCOMES];
static atomic_uint_fast64_t hs_bytes;
static atomic_size_t        hs_times_used;
static uint32_t             hs_times[HS_MAX_TIMES];


static uint64_t
hs_now(void)
{
    struct timespec  now;

    clock_gettime(CLOCK_MONOTONIC, &now);

    return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}


/* Splits the file into requests. */

static bool
hs_read_requests(const char *path)
{
    FILE    *file;
    char    *text, *p, *end, *host;
    long     size;
    size_t   room, length;

    file = fopen(path, "rb");
    if (file == NULL) {
        return false;
    }

    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    text = calloc(1, (size_t) size + 1);

    if (text == NULL || fread(text, 1, (size_t) size, file) != (size_t) size) {
        return false;
    }

    fclose(file);
    room = 0;

    for (p = text; (end = strstr(p, "\r\n\r\n")) != NULL; p = end + 4) {

        if (hs_count == room) {
            room = room ? 2 * room : 64;
            hs_requests = realloc(hs_requests, room * sizeof(hs_request_t));

            if (hs_requests == NULL) {
                return false;
            }
        }

        host = strcasestr(p, "\r\nHost: ");
        if (host == NULL || host > end) {
            return false;
        }

        host += 8;
        length = strcspn(host, ":\r");

        if (length >= sizeof(hs_requests[0].name)) {
            return false;
        }

        hs_requests[hs_count].start = p;
        hs_requests[hs_count].length = (size_t) (end + 4 - p);
        memcpy(hs_requests[hs_count].name, host, length);
        hs_requests[hs_count].name[length] = '\0';
        hs_count++;
    }

    return hs_count > 0;
}


static int
hs_connect(void)
{
    int             fd, one;
    struct timeval  limit;

    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd == -1) {
        return -1;
    }

    one = 1;
    limit.tv_sec = HS_TIMEOUT_S;
    limit.tv_usec = 0;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));

    if (connect(fd, (struct sockaddr *) &hs_address, sizeof(hs_address))
        == -1)
    {
        close(fd);
        return -1;
    }

    return fd;
}


/* Reads one answer. */

static hs_outcome_t
hs_read_answer(SSL *ssl)
{
    int      n;
    char     buffer[HS_BUFFER + 1], *body, *header;
    size_t   have, wanted;

    have = 0;
    wanted = SIZE_MAX;

    while (have < wanted) {
        n = SSL_read(ssl, buffer + have, (int) (HS_BUFFER - have));

        if (n <= 0) {
            return HS_READ;
        }

        have += (size_t) n;
        buffer[have] = '\0';
        body = strstr(buffer, "\r\n\r\n");

        if (body && wanted == SIZE_MAX) {
            header = strcasestr(buffer, "\r\nContent-Length: ");

            if (header == NULL || header > body) {
                return HS_READ;
            }

            wanted = (size_t) (body + 4 - buffer)
                     + strtoul(header + 18, NULL, 10);
        }

        if (have == HS_BUFFER && have < wanted) {
            return HS_READ;
        }
    }

    hs_bytes += have;

    return strncmp(buffer, "HTTP/1.1 200", 12) == 0 ? HS_DONE : HS_STATUS;
}


static hs_outcome_t
hs_exchange(hs_thread_t *thread, SSL *ssl, const hs_request_t *request)
{
    hs_outcome_t  outcome;

    SSL_set_tlsext_host_name(ssl, request->name);

    if (thread->session) {
        SSL_set_session(ssl, thread->session);
    }

    if (SSL_connect(ssl) != 1) {
        return HS_CONNECT;
    }

    if (thread->session && !SSL_session_reused(ssl)) {
        return HS_STATUS;
    }

    if (SSL_write(ssl, request->start, (int) request->length)
        != (int) request->length)
    {
        return HS_WRITE;
    }

    outcome = hs_read_answer(ssl);

    if (outcome == HS_DONE && hs_resumed) {
        SSL_SESSION_free(thread->session);
        thread->session = SSL_get1_session(ssl);
    }

    return outcome;
}


static void
hs_note(hs_outcome_t outcome, uint64_t began_ns)
{
    size_t  at;

    hs_outcomes[outcome]++;

    if (outcome == HS_DONE) {
        at = hs_times_used++;

        if (at < HS_MAX_TIMES) {
            hs_times[at] = (uint32_t) ((hs_now() - began_ns) / 1000);
        }
    }
}


static void *
hs_run(void *data)
{
    int                  fd;
    SSL                 *ssl;
    uint64_t             began;
    hs_thread_t         *thread = data;
    hs_outcome_t         outcome;
    const hs_request_t  *request;

    while ((began = hs_now()) < hs_deadline_ns) {
        request = &hs_requests[(hs_resumed ? thread->first : hs_next++)
                               % hs_count];
        fd = hs_connect();

        if (fd == -1) {
            hs_note(HS_CONNECT, began);
            continue;
        }

        ssl = SSL_new(hs_ctx);
        SSL_set_fd(ssl, fd);
        outcome = hs_exchange(thread, ssl, request);
        hs_note(outcome, began);

        if (outcome == HS_DONE) {
            SSL_shutdown(ssl);
        }

        SSL_free(ssl);
        close(fd);
    }

    return NULL;
}


static int
hs_compare(const void *one, const void *two)
{
    uint32_t  a = *(const uint32_t *) one, b = *(const uint32_t *) two;

    return (a > b) - (a < b);
}


static uint32_t
hs_percentile(double share)
{
    size_t  used;

    used = hs_times_used < HS_MAX_TIMES ? hs_times_used : HS_MAX_TIMES;

    return used ? hs_times[(size_t) (share * (double) (used - 1))] : 0;
}


static void
hs_print(uint64_t start)
{
    size_t  used;

    used = hs_times_used < HS_MAX_TIMES ? hs_times_used : HS_MAX_TIMES;
    qsort(hs_times, used, sizeof(hs_times[0]), hs_compare);

    printf("slice {\"requests\": %" PRIu64 ", \"bytes\": %" PRIu64
           ", \"duration_us\": %" PRIu64 ", \"p50_us\": %" PRIu32
           ", \"p90_us\": %" PRIu32 ", \"p99_us\": %" PRIu32
           ", \"p999_us\": %" PRIu32 ", \"connect\": %" PRIu64
           ", \"read\": %" PRIu64 ", \"write\": %" PRIu64
           ", \"timeout\": 0, \"status\": %" PRIu64 "}\n",
           (uint64_t) hs_outcomes[HS_DONE], (uint64_t) hs_bytes,
           (hs_now() - start) / 1000, hs_percentile(0.5), hs_percentile(0.9),
           hs_percentile(0.99), hs_percentile(0.999),
           (uint64_t) hs_outcomes[HS_CONNECT],
           (uint64_t) hs_outcomes[HS_READ], (uint64_t) hs_outcomes[HS_WRITE],
           (uint64_t) hs_outcomes[HS_STATUS]);
}


int
main(int argc, char **argv)
{
    int          i, connections;
    uint64_t     start;
    hs_thread_t  threads[HS_MAX_THREADS];

    if (argc != 7) {
        fprintf(stderr, "usage: handshake full|resumed address port file "
                        "connections seconds\n");
        return 2;
    }

    hs_resumed = strcmp(argv[1], "resumed") == 0;
    hs_address.sin_family = AF_INET;
    hs_address.sin_port = htons((uint16_t) atoi(argv[3]));
    connections = atoi(argv[5]);

    if (inet_pton(AF_INET, argv[2], &hs_address.sin_addr) != 1
        || connections < 1 || connections > HS_MAX_THREADS
        || !hs_read_requests(argv[4]))
    {
        fprintf(stderr, "handshake: an argument cannot be used\n");
        return 2;
    }

    signal(SIGPIPE, SIG_IGN);
    hs_ctx = SSL_CTX_new(TLS_client_method());

    if (hs_ctx == NULL) {
        return 1;
    }

    SSL_CTX_set_verify(hs_ctx, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_session_cache_mode(hs_ctx, SSL_SESS_CACHE_OFF);

    start = hs_now();
    hs_deadline_ns = start + (uint64_t) (atof(argv[6]) * 1e9);
    memset(threads, 0, sizeof(threads));

    for (i = 0; i < connections; i++) {
        threads[i].first = (size_t) i;

        if (pthread_create(&threads[i].id, NULL, hs_run, &threads[i]) != 0) {
            return 1;
        }
    }

    for (i = 0; i < connections; i++) {
        pthread_join(threads[i].id, NULL);
    }

    hs_print(start);

    return 0;
}
