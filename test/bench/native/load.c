// The load generator: one thread, epoll, N connections to 127.0.0.1 with D requests in flight each.
//   load --port P --api fetch|produce|metadata|versions --version V [--connections N] [--inflight D]
//        [--seconds S] [--warmup S] [--count N]   closed loop: until the time is over, or N answers
//        [--rate R]                                open loop: R requests a second over all connections, latency from
//                                                  the moment a request was due
//        [--slow-bytes B --slow-ms T]              each connection reads at most B bytes every T ms
//        [--open]                                  only opens the connections (TCP and ApiVersions), then waits for
//                                                  the end of its input
//        [--size BYTES] [--records N] [--record-bytes B] [--topic T] [--partitions N] [--step N] [--offsets N] [--hints]
//        [--client ID]                             the client id
//        [--dummy]                                 the far end is the dummy upstream: the first answer of every
//                                                  connection is compared byte for byte
// Prints {"event":"open"} when all connections have been answered once, {"event":"start"} when the measured time
// begins, and one line with the result. Every answer's correlation id and error code is checked; a fault ends it.
#include "load.h"

enum { DEPTH = 1024, MICROSECONDS = 4000000 };

typedef struct {
  int fd, ready, blocked, compared;
  Reader in;
  Bytes out;
  const Bytes *tail;     // what follows `out`, for a long request
  size_t done;           // bytes of out and tail that the kernel has taken
  uint32_t sent, answered, first; // counts; the correlation id of request n is first + n
  unsigned owed;         // open loop: requests that are due and not yet written
  uint64_t due[DEPTH];   // when request n should have left, at n % DEPTH
  uint64_t due_sent;     // open loop: how many entries of `due` are set
  uint32_t partition;
  uint64_t offset;
} Connection;

static Plan plan, versions;
static Connection *connections;
static int poll_fd, count_of, depth, ready_count, slow_bytes, opening;
static double rate;
static uint64_t answers, answer_limit, bytes_in, bytes_out, measuring_from;
static uint32_t *histogram;

static void fault(const char *what, const Connection *c) {
  fprintf(stderr, "load: %s (connection %d, request %u)\n", what, (int)(c - connections), c->answered);
  exit(1);
}

static void append_request(Connection *c, const Plan *p, int with_tail) {
  size_t at = c->out.length;
  put(&c->out, p->head.at, p->head.length);
  set32(c->out.at + at + 8, c->first + c->sent);
  if (p->partition_at) set32(c->out.at + at + p->partition_at, c->partition);
  if (p->offset_at && p->step) {
    set64(c->out.at + at + p->offset_at, c->offset);
    c->offset += p->step;
    if (c->offset >= p->offsets) c->offset = 0;
  }
  if (with_tail) put(&c->out, p->tail.at, p->tail.length);
  else c->tail = &p->tail;
  bytes_out += p->head.length + p->tail.length;
  c->sent++;
}

static int wanted(const Connection *c) {
  if (!c->ready) return c->sent == 0;
  if (opening) return 0;
  return rate > 0 ? c->owed > 0 : c->sent - c->answered < (uint32_t)depth;
}

// Writes whole requests as long as some are wanted and the kernel takes them: small ones together, long ones singly.
static void send_more(Connection *c) {
  for (;;) {
    if (c->done == c->out.length + (c->tail ? c->tail->length : 0)) {
      c->out.length = c->done = 0;
      c->tail = NULL;
      while (wanted(c) && c->out.length < BUFFER / 2 && !c->tail) {
        const Plan *p = c->ready ? &plan : &versions;
        if (rate > 0 && c->ready) c->owed--;
        else c->due[c->sent % DEPTH] = now_us();
        append_request(c, p, p->tail.length < 4096);
      }
      if (!c->out.length) break;
    }
    struct iovec pieces[2] = {{c->out.at, c->out.length}, {c->tail ? c->tail->at : NULL, c->tail ? c->tail->length : 0}};
    int all = push(c->fd, pieces, 2, &c->done);
    if (all < 0) fault("the connection failed while writing", c);
    if (!all) {
      if (!c->blocked) watch(poll_fd, c->fd, c, EPOLL_CTL_MOD, (slow_bytes ? 0 : EPOLLIN) | EPOLLOUT);
      c->blocked = 1;
      return;
    }
  }
  if (c->blocked) watch(poll_fd, c->fd, c, EPOLL_CTL_MOD, slow_bytes ? 0 : EPOLLIN);
  c->blocked = 0;
}

static void record(Connection *c, size_t total) {
  if (!c->ready) {
    c->ready = 1;
    ready_count++;
  } else if (measuring_from) {
    uint64_t took = now_us() - c->due[c->answered % DEPTH];
    histogram[took < MICROSECONDS ? took : MICROSECONDS - 1]++;
    bytes_in += total;
    answers++;
  }
  c->answered++;
}

static void compare(Connection *c, const uint8_t *body, size_t total) {
  size_t same = comparable(&plan);
  if (same && (total != plan.expected.length || memcmp(body + 8, plan.expected.at + 8, same - 8)))
    fault("the answer is not what the upstream sent", c);
  c->compared = 1;
}

// An answer's head, as far as it is there: correlation ids ascend per connection, the error code is 0.
static void check(Connection *c, const uint8_t *p, size_t here) {
  if (get32(p + 4) != c->first + c->answered) fault("wrong correlation id", c);
  if (c->ready && plan.error_at && here >= plan.error_at + 2 && get16(p + plan.error_at)) {
    fprintf(stderr, "load: error code %u\n", get16(p + plan.error_at));
    fault("the broker refused", c);
  }
}

static void handle(Connection *c) {
  size_t at = 0, total;
  while (!c->in.skip && (total = next_frame(&c->in, at))) {
    const uint8_t *p = c->in.buffer + at;
    size_t here = c->in.have - at < total ? c->in.have - at : total;
    check(c, p, here);
    if (here < total) {
      c->in.skip = total - here;
      if (!c->compared && comparable(&plan)) {
        c->in.keep = malloc(total);
        memcpy(c->in.keep, p, c->in.kept = here);
      }
    } else if (c->ready && !c->compared) {
      compare(c, p, total);
    }
    record(c, total);
    at += here;
  }
  consume(&c->in, at);
}

static void receive(Connection *c, size_t most) {
  int got = fill(c->fd, &c->in, most);
  if (got < 0) fault("the connection was closed", c);
  if (!got) return;
  if (c->in.keep && !c->in.skip) {
    compare(c, c->in.keep, c->in.kept);
    free(c->in.keep);
    c->in.keep = NULL;
  }
  if (!c->in.skip) handle(c);
  if (!c->blocked) send_more(c);
}

static void open_connection(Connection *c, int port, int index) {
  struct sockaddr_in to = loopback(port);
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (c->fd < 0) die("socket");
  tune(c->fd);
  if (slow_bytes) {
    int size = 64 * 1024;
    setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  }
  c->in.buffer = malloc(BUFFER);
  c->first = (uint32_t)index * 7919u + 1000u;
  c->partition = plan.partitions ? (uint32_t)index % plan.partitions : 0;
  if (plan.step) c->offset = (uint64_t)index * 37 * plan.step % plan.offsets;
  if (connect(c->fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS) fault("cannot connect", c);
  c->blocked = 1;
  watch(poll_fd, c->fd, c, EPOLL_CTL_ADD, (slow_bytes ? 0 : EPOLLIN) | EPOLLOUT);
}

// Open loop: `ticks` more requests are due, given to the connections in turn.
static void owe(uint64_t ticks) {
  static unsigned turn;
  uint64_t at = now_us();
  for (; ticks; ticks--) {
    Connection *c = &connections[turn++ % (unsigned)count_of];
    if (c->sent + c->owed - c->answered >= DEPTH) fault("a thousand requests are unanswered", c);
    c->due[(c->sent + c->owed++) % DEPTH] = at - (uint64_t)((double)(ticks - 1) * 1e6 / rate);
    if (!c->blocked) send_more(c);
  }
}

static int timer(uint64_t period_ns) {
  int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  struct timespec period = {(time_t)(period_ns / 1000000000u), (long)(period_ns % 1000000000u)};
  struct itimerspec spec = {period, period};
  timerfd_settime(fd, 0, &spec, NULL);
  watch(poll_fd, fd, NULL, EPOLL_CTL_ADD, EPOLLIN);
  return fd;
}

// Handles events until `deadline`, or until `stop` is reached: all connections ready, or enough answers.
static void run(uint64_t deadline, int until_ready, int timer_fd) {
  while (until_ready ? ready_count < count_of : !answer_limit || answers < answer_limit) {
    uint64_t now = now_us();
    if (now >= deadline) {
      if (until_ready || answer_limit) fault("time is up", &connections[0]);
      return;
    }
    struct epoll_event events[256];
    int n = epoll_wait(poll_fd, events, 256, (int)((deadline - now) / 1000) + 1);
    for (int i = 0; i < n; i++) {
      Connection *c = events[i].data.ptr;
      if (!c) {
        uint64_t ticks = 0;
        if (read(timer_fd, &ticks, 8) != 8) continue;
        if (rate > 0) owe(ticks);
        else for (int k = 0; k < count_of; k++) receive(&connections[k], (size_t)slow_bytes);
        continue;
      }
      if (events[i].events & EPOLLOUT) send_more(c);
      if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(c, 1 << 20);
    }
  }
}

static void say(const char *line) {
  puts(line);
  fflush(stdout);
}

static double percentile(double share) {
  uint64_t seen = 0, wanted_rank = (uint64_t)(share * (double)answers);
  for (uint32_t us = 0; us < MICROSECONDS; us++)
    if ((seen += histogram[us]) > wanted_rank) return us / 1000.0;
  return MICROSECONDS / 1000.0;
}

static void report(uint64_t took, double opening_ms) {
  printf("{\"event\":\"result\",\"seconds\":%.6f,\"answers\":%llu,\"bytesIn\":%llu,\"bytesOut\":%llu,"
         "\"p50Ms\":%.3f,\"p99Ms\":%.3f,\"openingMs\":%.3f}\n",
         (double)took / 1e6, (unsigned long long)answers, (unsigned long long)bytes_in, (unsigned long long)bytes_out,
         percentile(0.5), percentile(0.99), opening_ms);
  fflush(stdout);
}

static int flag(int argc, char **argv, const char *name) {
  for (int i = 1; i < argc; i++)
    if (!strncmp(argv[i], "--", 2) && !strcmp(argv[i] + 2, name)) return 1;
  return 0;
}

static int api_of(const char *name) {
  return !strcmp(name, "produce") ? PRODUCE : !strcmp(name, "fetch") ? FETCH : !strcmp(name, "metadata") ? METADATA : API_VERSIONS;
}

static void read_plan(int argc, char **argv) {
  int hints = flag(argc, argv, "hints");
  const char *client = option(argc, argv, "client", hints ? "bench-hints" : "bench-plain");
  plan = make_plan(api_of(option(argc, argv, "api", "versions")), (int)number(argc, argv, "version", 3),
                   hints, client, option(argc, argv, "topic", "bench"),
                   (uint32_t)number(argc, argv, "size", 1 << 20), (uint32_t)number(argc, argv, "records", 1),
                   (uint32_t)number(argc, argv, "record-bytes", 100));
  plan.dummy = flag(argc, argv, "dummy");
  plan.partitions = (uint32_t)number(argc, argv, "partitions", 0);
  plan.step = (uint64_t)number(argc, argv, "step", 0);
  plan.offsets = (uint64_t)number(argc, argv, "offsets", 1);
  versions = make_plan(API_VERSIONS, 3, 0, client, "", 0, 0, 0);
}

int main(int argc, char **argv) {
  raise_descriptors();
  read_plan(argc, argv);
  count_of = (int)number(argc, argv, "connections", 1);
  depth = (int)number(argc, argv, "inflight", 1);
  slow_bytes = (int)number(argc, argv, "slow-bytes", 0);
  double seconds = number(argc, argv, "seconds", 3), warmup = number(argc, argv, "warmup", 0.5);
  if (depth > DEPTH || count_of < 1) return fprintf(stderr, "load: bad --connections or --inflight\n"), 2;
  poll_fd = epoll_create1(0);
  connections = calloc((size_t)count_of, sizeof *connections);
  histogram = calloc(MICROSECONDS, sizeof *histogram);
  opening = 1;
  uint64_t began = now_us();
  int timer_fd = slow_bytes ? timer((uint64_t)number(argc, argv, "slow-ms", 10) * 1000000u) : -1;
  for (int i = 0; i < count_of; i++) open_connection(&connections[i], (int)number(argc, argv, "port", 0), i);
  run(began + 30000000u, 1, timer_fd);
  double opening_ms = (double)(now_us() - began) / 1000.0;
  say("{\"event\":\"open\"}");
  if (flag(argc, argv, "open")) {
    char end;
    while (read(0, &end, 1) > 0) continue;
    report(1, opening_ms);
    return 0;
  }
  opening = 0;
  rate = number(argc, argv, "rate", 0);
  if (rate > 0) timer_fd = timer((uint64_t)(1e9 / rate));
  for (int i = 0; i < count_of; i++)
    if (!connections[i].blocked) send_more(&connections[i]);
  run(now_us() + (uint64_t)(warmup * 1e6), 0, timer_fd);
  bytes_out = 0;
  answer_limit = (uint64_t)number(argc, argv, "count", 0);
  measuring_from = now_us();
  say("{\"event\":\"start\"}");
  run(measuring_from + (uint64_t)((answer_limit ? 60 : seconds) * 1e6), 0, timer_fd);
  report(now_us() - measuring_from, opening_ms);
  return 0;
}
