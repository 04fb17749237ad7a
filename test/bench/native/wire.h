// Kafka frames for the bench: a big-endian writer and just the messages that the load generator and the dummy upstream
// exchange. Invariant: what is built here is valid Kafka (lengths, counts, tagged fields, record batch CRC), so that a
// proxy that reads headers or skips over lengths finds what a real broker or client would send.
#ifndef HEADGATE_BENCH_WIRE_H
#define HEADGATE_BENCH_WIRE_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRODUCE = 0, FETCH = 1, METADATA = 3, API_VERSIONS = 18, DESCRIBE_CLUSTER = 60 };

typedef struct {
  uint8_t *at;
  size_t length, room;
} Bytes;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static void put(Bytes *b, const void *from, size_t n) {
  if (b->length + n > b->room) {
    b->room = (b->length + n) * 2 + 256;
    if (!(b->at = realloc(b->at, b->room))) die("realloc");
  }
  memcpy(b->at + b->length, from, n);
  b->length += n;
}
static void put8(Bytes *b, unsigned v) { uint8_t x = (uint8_t)v; put(b, &x, 1); }
static void put16(Bytes *b, unsigned v) { uint16_t x = __builtin_bswap16((uint16_t)v); put(b, &x, 2); }
static void put32(Bytes *b, uint32_t v) { uint32_t x = __builtin_bswap32(v); put(b, &x, 4); }
static void put64(Bytes *b, uint64_t v) { uint64_t x = __builtin_bswap64(v); put(b, &x, 8); }
static void put_varint(Bytes *b, uint32_t v) {
  for (; v > 127; v >>= 7) put8(b, (v & 127) | 128);
  put8(b, v);
}
static void put_zigzag(Bytes *b, int32_t v) { put_varint(b, ((uint32_t)v << 1) ^ (uint32_t)(v >> 31)); }

// Flexible versions write lengths as varint(n + 1) and end each struct with a count of tagged fields.
static void put_count(Bytes *b, int flexible, uint32_t n) { flexible ? put_varint(b, n + 1) : put32(b, n); }
static void put_tags(Bytes *b, int flexible) { if (flexible) put8(b, 0); }
static void put_string(Bytes *b, int flexible, const char *s) {
  size_t n = strlen(s);
  flexible ? put_varint(b, (uint32_t)n + 1) : put16(b, (unsigned)n);
  put(b, s, n);
}
static void put_null_string(Bytes *b, int flexible) { flexible ? put8(b, 0) : put16(b, 0xffff); }

static uint32_t get32(const uint8_t *p) { uint32_t x; memcpy(&x, p, 4); return __builtin_bswap32(x); }
static unsigned get16(const uint8_t *p) { return (unsigned)p[0] << 8 | p[1]; }
static void set32(uint8_t *p, uint32_t v) { v = __builtin_bswap32(v); memcpy(p, &v, 4); }
static void set64(uint8_t *p, uint64_t v) { v = __builtin_bswap64(v); memcpy(p, &v, 8); }

static int is_flexible(int api, int version) {
  switch (api) {
    case PRODUCE: return version >= 9;
    case FETCH: return version >= 12;
    case METADATA: return version >= 9;
    case API_VERSIONS: return version >= 3;
    default: return 1;
  }
}

// Size (patched by `close_frame`), key, version, correlation id (patched per request, at byte 8), client id, tags.
static void open_request(Bytes *b, int api, int version, const char *client) {
  put32(b, 0);
  put16(b, (unsigned)api);
  put16(b, (unsigned)version);
  put32(b, 0);
  put_string(b, 0, client);
  put_tags(b, is_flexible(api, version));
}
// Size, correlation id (at byte 4), tags; the header of an ApiVersions answer is always version 0.
static void open_answer(Bytes *b, int api, int version) {
  put32(b, 0);
  put32(b, 0);
  put_tags(b, api != API_VERSIONS && is_flexible(api, version));
}
static void close_frame(Bytes *b, size_t tail) { set32(b->at, (uint32_t)(b->length + tail - 4)); }

static uint32_t crc32c(const uint8_t *p, size_t n) {
  static uint32_t table[256];
  if (!table[1])
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t c = i;
      for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
      table[i] = c;
    }
  uint32_t c = ~0u;
  while (n--) c = table[(c ^ *p++) & 255] ^ c >> 8;
  return ~c;
}

// One batch (magic 2) of `count` records, each with a value of `value_bytes` that does not compress to nothing.
static Bytes record_batch(uint32_t count, uint32_t value_bytes) {
  Bytes b = {0}, body = {0};
  uint8_t *value = malloc(value_bytes);
  uint32_t seed = 1;
  for (uint32_t i = 0; i < count; i++) {
    Bytes record = {0};
    for (uint32_t k = 0; k < value_bytes; k++) value[k] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
    put8(&record, 0);
    put_zigzag(&record, 0);
    put_zigzag(&record, (int32_t)i);
    put_zigzag(&record, -1);
    put_zigzag(&record, (int32_t)value_bytes);
    put(&record, value, value_bytes);
    put_zigzag(&record, 0);
    put_zigzag(&body, (int32_t)record.length);
    put(&body, record.at, record.length);
    free(record.at);
  }
  free(value);
  put64(&b, 0);                                // base offset
  put32(&b, (uint32_t)(49 + body.length));     // length after this field
  put32(&b, 0xffffffffu);                      // leader epoch
  put8(&b, 2);                                 // magic
  put32(&b, 0);                                // crc, set below
  put16(&b, 0);                                // attributes
  put32(&b, count - 1);                        // last offset delta
  put64(&b, 1700000000000u);                   // base and max timestamp
  put64(&b, 1700000000000u);
  put64(&b, ~0ull);                            // producer id
  put16(&b, 0xffff);                           // producer epoch
  put32(&b, 0xffffffffu);                      // base sequence
  put32(&b, count);
  put(&b, body.at, body.length);
  free(body.at);
  set32(b.at + 17, crc32c(b.at + 21, b.length - 21));
  return b;
}

// The topic as both sides name it: by name, or from Fetch v13 and Produce v13 on by id.
static void put_topic(Bytes *b, int flexible, int by_id, const char *topic) {
  static const uint8_t id[16] = "headgate-bench-1";
  by_id ? put(b, id, 16) : put_string(b, flexible, topic);
}
#endif
