// The dummy upstream: a Kafka broker that costs next to nothing, so that a proxy in front of it is the limit.
// It answers ApiVersions, Metadata, DescribeCluster, Fetch (as many bytes as the request's max_bytes) and Produce
// (whatever it carries) from prepared frames; anything else closes the connection, as a broker does.
//   upstream --port P [--topics N] [--partitions N] [--canned CLIENT=FILE] …
// --canned: what every Fetch of that client id gets as its records, instead of as many bytes as it asks for.
// Prints "listening" and serves until it is killed. A client id that ends in "hints" gets node endpoints (KIP-951).
#include "stream.h"
#include "messages.h"

enum { QUEUE = 2048, PIECES = 32 };

typedef struct Prepared {
  int api, version, hints;
  uint32_t size;
  const Bytes *canned;
  Bytes frame;
  struct Prepared *next;
} Prepared;

typedef struct {
  uint8_t head[8]; // size and correlation id; the rest is shared by all answers of a kind
  const Prepared *answer;
} Answer;

typedef struct {
  int fd, blocked;
  Reader in;
  Answer *queue; // QUEUE answers, a ring
  unsigned first, count;
  size_t done; // bytes of the queue's front that the kernel has taken
  int postponed; // the newest answer belongs to a frame still being skipped
} Connection;

typedef struct {
  const char *client;
  size_t client_length;
  Bytes records;
} Canned;

enum { MOST_CANNED = 16 };
static Canned canned_answers[MOST_CANNED];
static unsigned canned_count;

static int port;
static uint32_t topics, partitions;
static Prepared *prepared;

static const Prepared *prepare(int api, int version, int hints, uint32_t size, const Bytes *canned) {
  for (Prepared *p = prepared; p; p = p->next)
    if (p->api == api && p->version == version && p->hints == hints && p->size == size && p->canned == canned)
      return p;
  Bytes b = {0};
  open_answer(&b, api, version);
  switch (api) {
    case API_VERSIONS: put_api_versions(&b, version); break;
    case METADATA: put_metadata(&b, version, port, topics, partitions); break;
    case DESCRIBE_CLUSTER: put_describe_cluster(&b, version, port); break;
    case FETCH: {
      Bytes records = canned ? *canned : records_of(size);
      put_fetch_answer(&b, version, &records, hints, port);
      if (!canned) free(records.at);
      break;
    }
    case PRODUCE: put_produce_answer(&b, version, hints, port); break;
    default: return NULL;
  }
  close_frame(&b, 0);
  Prepared *p = calloc(1, sizeof *p);
  *p = (Prepared){api, version, hints, size, canned, b, prepared};
  return prepared = p;
}

static const Bytes *canned_for(const uint8_t *client, size_t length) {
  for (unsigned i = 0; i < canned_count; i++)
    if (canned_answers[i].client_length == length && !memcmp(canned_answers[i].client, client, length))
      return &canned_answers[i].records;
  return NULL;
}

static void read_canned(const char *text) {
  const char *equals = strchr(text, '=');
  if (!equals || canned_count == MOST_CANNED) fprintf(stderr, "upstream: bad --canned\n"), exit(2);
  Canned *c = &canned_answers[canned_count++];
  *c = (Canned){.client = text, .client_length = (size_t)(equals - text)};
  FILE *file = fopen(equals + 1, "rb");
  if (!file) die(equals + 1);
  uint8_t piece[65536];
  for (size_t n; (n = fread(piece, 1, sizeof piece, file)) > 0;) put(&c->records, piece, n);
  fclose(file);
}

static int supported(int api, int version) {
  for (size_t i = 0; i < sizeof advertised / sizeof *advertised; i++)
    if (advertised[i].key == api) return version >= advertised[i].low && version <= advertised[i].high;
  return 0;
}

// Queues the answer to the request whose head is at `p`. 0: the connection must be closed.
static int answer(Connection *c, const uint8_t *p) {
  int api = (int)get16(p + 4), version = (int)get16(p + 6), hints = 0;
  size_t client = get16(p + 12) == 0xffff ? 0 : get16(p + 12);
  uint32_t size = 0;
  if (!supported(api, version)) return 0;
  if (client >= 5) hints = !memcmp(p + 14 + client - 5, "hints", 5);
  if (api == FETCH) {
    const uint8_t *body = p + 14 + client + is_flexible(api, version);
    size = get32(body + (version <= 14 ? 12 : 8));
  }
  if (c->count == QUEUE) return 0;
  Answer *a = &c->queue[(c->first + c->count++) % QUEUE];
  const Bytes *canned = api == FETCH ? canned_for(p + 14, client) : NULL;
  if (!(a->answer = prepare(api, version, hints, size, canned))) return 0;
  memcpy(a->head, a->answer->frame.at, 4);
  memcpy(a->head + 4, p + 8, 4);
  return 1;
}

static int handle(Connection *c) {
  size_t at = 0, total;
  while (!c->in.skip && (total = next_frame(&c->in, at))) {
    if (total < 14 || !answer(c, c->in.buffer + at)) return 0;
    size_t here = c->in.have - at < total ? c->in.have - at : total;
    c->in.skip = total - here;
    at += here;
  }
  consume(&c->in, at);
  c->postponed = c->in.skip > 0;
  return 1;
}

static int flush(Connection *c, int poll) {
  for (;;) {
    struct iovec pieces[2 * PIECES];
    unsigned ready = c->count - (unsigned)c->postponed, n = ready < PIECES ? ready : PIECES;
    if (!n) break;
    for (unsigned i = 0; i < n; i++) {
      Answer *a = &c->queue[(c->first + i) % QUEUE];
      pieces[2 * i] = (struct iovec){a->head, 8};
      pieces[2 * i + 1] = (struct iovec){a->answer->frame.at + 8, a->answer->frame.length - 8};
    }
    int all = push(c->fd, pieces, (int)(2 * n), &c->done);
    if (all < 0) return 0;
    while (c->count && c->done >= c->queue[c->first].answer->frame.length) {
      c->done -= c->queue[c->first].answer->frame.length;
      c->first = (c->first + 1) % QUEUE;
      c->count--;
    }
    if (!all) {
      if (!c->blocked) watch(poll, c->fd, c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
      c->blocked = 1;
      return 1;
    }
  }
  if (c->blocked) watch(poll, c->fd, c, EPOLL_CTL_MOD, EPOLLIN);
  c->blocked = 0;
  return 1;
}

static void drop(Connection *c) {
  close(c->fd);
  free(c->in.buffer);
  free(c->queue);
  free(c);
}

static void serve(Connection *c, int poll, uint32_t events) {
  int alive = 1;
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
    int got = fill(c->fd, &c->in, 1 << 20);
    alive = got >= 0;
    if (got > 0) {
      if (!c->in.skip) c->postponed = 0;
      if (c->in.have) alive = handle(c);
    }
  }
  if (!alive || !flush(c, poll)) drop(c);
}

int main(int argc, char **argv) {
  port = (int)number(argc, argv, "port", 0);
  topics = (uint32_t)number(argc, argv, "topics", 1);
  partitions = (uint32_t)number(argc, argv, "partitions", 1);
  for (int i = 1; i + 1 < argc; i++)
    if (!strcmp(argv[i], "--canned")) read_canned(argv[i + 1]);
  raise_descriptors();
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1, poll = epoll_create1(0);
  struct sockaddr_in address = loopback(port);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 4096) < 0) die("listen");
  watch(poll, listener, NULL, EPOLL_CTL_ADD, EPOLLIN);
  puts("listening");
  fflush(stdout);
  for (;;) {
    struct epoll_event events[256];
    int n = epoll_wait(poll, events, 256, -1);
    for (int i = 0; i < n; i++) {
      if (events[i].data.ptr) {
        serve(events[i].data.ptr, poll, events[i].events);
        continue;
      }
      int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
      if (fd < 0) continue;
      Connection *c = calloc(1, sizeof *c);
      tune(fd);
      c->fd = fd;
      c->in.buffer = malloc(BUFFER);
      c->queue = malloc(QUEUE * sizeof *c->queue);
      watch(poll, fd, c, EPOLL_CTL_ADD, EPOLLIN);
    }
  }
}
