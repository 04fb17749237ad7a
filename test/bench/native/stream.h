// TCP for the bench: reading frames without copying their bodies, and writing pieces that may be taken in part.
// Invariant: only loopback is ever dialled or listened on. A frame larger than the buffer is seen by its first bytes;
// the rest is discarded in the kernel (MSG_TRUNC), so that the proxy between the two ends is what limits a run.
#ifndef HEADGATE_BENCH_STREAM_H
#define HEADGATE_BENCH_STREAM_H
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "wire.h"

enum { BUFFER = 64 * 1024, HEAD = 256 };

typedef struct {
  uint8_t *buffer; // BUFFER bytes
  size_t have;     // bytes at its front that belong to frames not yet handled
  uint64_t skip;   // bytes of a long frame still to be discarded
  uint8_t *keep;   // where these bytes go instead of being discarded, if they are to be compared
  size_t kept;
} Reader;

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

static void tune(int fd) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static uint64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

// All the descriptors that the system allows: a thousand connections need more than the usual soft limit.
static void raise_descriptors(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  signal(SIGPIPE, SIG_IGN);
}

// Reads once. 1: something came, 0: nothing yet, -1: the connection has ended or failed.
static int fill(int fd, Reader *r, size_t most) {
  ssize_t n;
  if (r->skip && r->keep) {
    n = recv(fd, r->keep + r->kept, r->skip, 0);
    if (n > 0) r->kept += (size_t)n;
  } else if (r->skip) {
    n = recv(fd, NULL, r->skip < most ? r->skip : most, MSG_TRUNC);
  } else {
    size_t room = BUFFER - r->have;
    n = recv(fd, r->buffer + r->have, room < most ? room : most, 0);
  }
  if (n == 0) return -1;
  if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
  if (r->skip) r->skip -= (size_t)n;
  else r->have += (size_t)n;
  return 1;
}

// The next frame at `at` of the buffer: its total length, or 0 while its head is not complete. A frame that goes on
// beyond the buffer is handled by its head once HEAD bytes of it are there; the caller then skips what is missing.
static size_t next_frame(const Reader *r, size_t at) {
  size_t rest = r->have - at;
  if (rest < 4) return 0;
  size_t total = 4 + (size_t)get32(r->buffer + at);
  if (rest >= total) return total;
  return total > BUFFER && rest >= HEAD ? total : 0;
}

static void consume(Reader *r, size_t n) {
  if (n < r->have) memmove(r->buffer, r->buffer + n, r->have - n);
  r->have -= n;
}

// Sends what is left of up to `count` pieces after `*done` bytes. 1: all gone, 0: the kernel is full, -1: failed.
static int push(int fd, const struct iovec *pieces, int count, size_t *done) {
  struct iovec left[64];
  size_t skip = *done, total = 0;
  int n = 0;
  for (int i = 0; i < count; i++) {
    if (skip >= pieces[i].iov_len) {
      skip -= pieces[i].iov_len;
      continue;
    }
    left[n].iov_base = (uint8_t *)pieces[i].iov_base + skip;
    left[n].iov_len = pieces[i].iov_len - skip;
    total += left[n++].iov_len;
    skip = 0;
  }
  if (!total) return 1;
  struct msghdr message = {.msg_iov = left, .msg_iovlen = (size_t)n};
  ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
  *done += (size_t)sent;
  return (size_t)sent == total;
}

static void watch(int poll, int fd, void *owner, int operation, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = owner};
  if (epoll_ctl(poll, operation, fd, &event) < 0) die("epoll_ctl");
}

// `--name value` from the command line, or `other`.
static const char *option(int argc, char **argv, const char *name, const char *other) {
  for (int i = 1; i + 1 < argc; i++)
    if (!strncmp(argv[i], "--", 2) && !strcmp(argv[i] + 2, name)) return argv[i + 1];
  return other;
}
static double number(int argc, char **argv, const char *name, double other) {
  const char *text = option(argc, argv, name, NULL);
  return text ? atof(text) : other;
}
#endif
