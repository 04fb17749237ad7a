// The messages themselves, for every version that the dummy upstream advertises. All of them name one broker, node 1.
// Invariant: a builder's result depends only on its arguments, so the load generator can build the answer that it
// expects and compare it byte for byte with what came through the proxy.
#ifndef HEADGATE_BENCH_MESSAGES_H
#define HEADGATE_BENCH_MESSAGES_H
#include "wire.h"

enum { NODE_ID = 1 };
static const struct { int key, low, high; } advertised[] = {
  {PRODUCE, 0, 12}, {FETCH, 4, 17}, {METADATA, 0, 12}, {API_VERSIONS, 0, 4}, {DESCRIBE_CLUSTER, 0, 1},
};

static void put_api_versions(Bytes *b, int version) {
  int flexible = version >= 3;
  uint32_t n = sizeof advertised / sizeof *advertised;
  put16(b, 0);
  put_count(b, flexible, n);
  for (uint32_t i = 0; i < n; i++) {
    put16(b, (unsigned)advertised[i].key);
    put16(b, (unsigned)advertised[i].low);
    put16(b, (unsigned)advertised[i].high);
    put_tags(b, flexible);
  }
  if (version >= 1) put32(b, 0);
  put_tags(b, flexible);
}

static void put_partition(Bytes *b, int version, int flexible, uint32_t index) {
  put16(b, 0);
  put32(b, index);
  put32(b, NODE_ID);
  if (version >= 7) put32(b, 0);
  for (int list = 0; list < 2; list++) { // replicas, in-sync replicas
    put_count(b, flexible, 1);
    put32(b, NODE_ID);
  }
  if (version >= 5) put_count(b, flexible, 0);
  put_tags(b, flexible);
}

static void put_metadata(Bytes *b, int version, int port, uint32_t topics, uint32_t partitions) {
  int flexible = version >= 9;
  if (version >= 3) put32(b, 0);
  put_count(b, flexible, 1);
  put32(b, NODE_ID);
  put_string(b, flexible, "127.0.0.1");
  put32(b, (uint32_t)port);
  if (version >= 1) put_null_string(b, flexible);
  put_tags(b, flexible);
  if (version >= 2) put_string(b, flexible, "headgate-bench");
  if (version >= 1) put32(b, NODE_ID);
  put_count(b, flexible, topics);
  for (uint32_t t = 0; t < topics; t++) {
    char name[64];
    uint8_t id[16] = {0};
    snprintf(name, sizeof name, "bench-topic-with-a-usual-name-%04u", t);
    set32(id, t + 1);
    put16(b, 0);
    put_string(b, flexible, name);
    if (version >= 10) put(b, id, 16);
    if (version >= 1) put8(b, 0);
    put_count(b, flexible, partitions);
    for (uint32_t p = 0; p < partitions; p++) put_partition(b, version, flexible, p);
    if (version >= 8) put32(b, 0x80000000u);
    put_tags(b, flexible);
  }
  if (version >= 8 && version <= 10) put32(b, 0x80000000u);
  put_tags(b, flexible);
}

static void put_describe_cluster(Bytes *b, int version, int port) {
  put32(b, 0);
  put16(b, 0);
  put_null_string(b, 1);
  if (version >= 1) put8(b, 1);
  put_string(b, 1, "headgate-bench");
  put32(b, NODE_ID);
  put_count(b, 1, 1);
  put32(b, NODE_ID);
  put_string(b, 1, "127.0.0.1");
  put32(b, (uint32_t)port);
  put_null_string(b, 1);
  put_tags(b, 1);
  put32(b, 0x80000000u);
  put_tags(b, 1);
}

// Where the leaders are now (KIP-951): tag 0 at the very end of a Fetch v16+ or Produce v10+ answer.
static void put_node_endpoints(Bytes *b, int port) {
  Bytes field = {0};
  put_count(&field, 1, 1);
  put32(&field, NODE_ID);
  put_string(&field, 1, "127.0.0.1");
  put32(&field, (uint32_t)port);
  put_null_string(&field, 1);
  put_tags(&field, 1);
  put8(b, 1);
  put_varint(b, 0);
  put_varint(b, (uint32_t)field.length);
  put(b, field.at, field.length);
  free(field.at);
}

// About `size` bytes of records in batches of 64 KiB.
static Bytes records_of(uint32_t size) {
  Bytes b = {0}, batch = record_batch(64, 1024 - 7);
  for (uint32_t n = 0; n < size / (uint32_t)batch.length; n++) {
    set64(batch.at, n * 64); // the base offset is outside the CRC
    put(&b, batch.at, batch.length);
  }
  free(batch.at);
  return b;
}

// A Fetch answer with these records. `hints`: with node endpoints.
static void put_fetch_answer(Bytes *b, int version, const Bytes *records, int hints, int port) {
  int flexible = version >= 12;
  put32(b, 0);
  if (version >= 7) put16(b, 0);
  if (version >= 7) put32(b, 0);
  put_count(b, flexible, 1);
  put_topic(b, flexible, version >= 13, "bench");
  put_count(b, flexible, 1);
  put32(b, 0);
  put16(b, 0);
  put64(b, 1000000);
  put64(b, 1000000);
  if (version >= 5) put64(b, 0);
  put_count(b, flexible, 0);
  if (version >= 11) put32(b, 0xffffffffu);
  put_count(b, flexible, (uint32_t)records->length);
  put(b, records->at, records->length);
  put_tags(b, flexible); // partition
  put_tags(b, flexible); // topic
  if (hints && version >= 16) put_node_endpoints(b, port);
  else put_tags(b, flexible);
}

static void put_produce_answer(Bytes *b, int version, int hints, int port) {
  int flexible = version >= 9;
  put_count(b, flexible, 1);
  put_topic(b, flexible, version >= 13, "bench");
  put_count(b, flexible, 1);
  put32(b, 0);
  put16(b, 0);
  put64(b, 42);
  if (version >= 2) put64(b, ~0ull);
  if (version >= 5) put64(b, 0);
  if (version >= 8) put_count(b, flexible, 0);
  if (version >= 8) put_null_string(b, flexible);
  put_tags(b, flexible);
  put_tags(b, flexible);
  if (version >= 1) put32(b, 0);
  if (hints && version >= 10) put_node_endpoints(b, port);
  else put_tags(b, flexible);
}

// The fixed part of a Fetch request for one partition; `offset_at` and `partition_at` say where the caller may patch.
static void put_fetch_request(Bytes *b, int version, const char *topic, uint32_t size, size_t *partition_at, size_t *offset_at) {
  int flexible = version >= 12;
  if (version <= 14) put32(b, 0xffffffffu); // replica id: a consumer
  put32(b, 500);                            // max wait, ms
  put32(b, 1);                              // min bytes
  put32(b, size);                           // max bytes: the dummy upstream answers with about as many
  put8(b, 0);
  if (version >= 7) put32(b, 0);
  if (version >= 7) put32(b, 0xffffffffu);
  put_count(b, flexible, 1);
  put_topic(b, flexible, version >= 13, topic);
  put_count(b, flexible, 1);
  *partition_at = b->length;
  put32(b, 0);
  if (version >= 9) put32(b, 0xffffffffu);
  *offset_at = b->length;
  put64(b, 0);
  if (version >= 12) put32(b, 0xffffffffu);
  if (version >= 5) put64(b, ~0ull);
  put32(b, size);
  put_tags(b, flexible);
  put_tags(b, flexible);
  if (version >= 7) put_count(b, flexible, 0);
  if (version >= 11) put_string(b, flexible, "");
  put_tags(b, flexible);
}

// A Produce request up to its records, of which `records` bytes follow; then come `produce_end` bytes of tags.
static void put_produce_request(Bytes *b, int version, const char *topic, size_t records, size_t *partition_at) {
  int flexible = version >= 9;
  put_null_string(b, flexible);
  put16(b, 1); // acks
  put32(b, 30000);
  put_count(b, flexible, 1);
  put_topic(b, flexible, version >= 13, topic);
  put_count(b, flexible, 1);
  *partition_at = b->length;
  put32(b, 0);
  put_count(b, flexible, (uint32_t)records);
}
#endif
