// What the load generator sends and expects, per kind of request.
// Invariant: requests differ only in correlation id, partition and fetch offset, all in their small head; the tail
// (a Produce request's records) is shared by all.
#ifndef HEADGATE_BENCH_LOAD_H
#define HEADGATE_BENCH_LOAD_H
#include "stream.h"
#include "messages.h"

typedef struct {
  int api, version, hints, dummy;
  Bytes head, tail;         // one request
  size_t partition_at;      // where in `head`, 0: nowhere
  size_t offset_at;
  uint32_t partitions;
  uint64_t step, offsets;   // fetch offsets go 0, step, 2·step … below `offsets`
  size_t error_at;          // where in an answer the partition's error code stands, 0: nowhere
  Bytes expected;           // the whole answer of the dummy upstream
} Plan;

static size_t varint_length(uint32_t v) {
  size_t n = 1;
  for (; v > 127; v >>= 7) n++;
  return n;
}

static void plan_produce(Plan *plan, const char *topic, uint32_t records, uint32_t record_bytes) {
  Bytes batch = record_batch(records, record_bytes);
  put_produce_request(&plan->head, plan->version, topic, batch.length, &plan->partition_at);
  put(&plan->tail, batch.at, batch.length);
  for (int i = 0; i < 3; i++) put_tags(&plan->tail, is_flexible(PRODUCE, plan->version));
  int flexible = is_flexible(PRODUCE, plan->version);
  size_t name = plan->version >= 13 ? 16 : strlen(topic) + (flexible ? varint_length((uint32_t)strlen(topic) + 1) : 2);
  plan->error_at = 8 + (flexible ? 1 + 1 + name + 1 : 4 + name + 4) + 4;
  free(batch.at);
  put_produce_answer(&plan->expected, plan->version, plan->hints, 0);
}

static void plan_fetch(Plan *plan, const char *topic, uint32_t size) {
  int flexible = is_flexible(FETCH, plan->version);
  put_fetch_request(&plan->head, plan->version, topic, size, &plan->partition_at, &plan->offset_at);
  size_t name = plan->version >= 13 ? 16 : strlen(topic) + (flexible ? varint_length((uint32_t)strlen(topic) + 1) : 2);
  plan->error_at = 8 + (flexible ? 1 + 1 + name + 1 : 4 + name + 4) + 4 + 4 + (plan->version >= 7 ? 6 : 0);
}

static void expect_fetch_answer(Plan *plan, uint32_t size) {
  Bytes records = records_of(size);
  put_fetch_answer(&plan->expected, plan->version, &records, plan->hints, 0);
  free(records.at);
}

// The request of this run; `size` is a Fetch answer's bytes, `records` × `record_bytes` a Produce request's.
static Plan make_plan(int api, int version, int hints, const char *client, const char *topic, uint32_t size, uint32_t records, uint32_t record_bytes) {
  Plan plan = {.api = api, .version = version, .hints = hints};
  open_request(&plan.head, api, version, client);
  open_answer(&plan.expected, api, version);
  switch (api) {
    case PRODUCE: plan_produce(&plan, topic, records, record_bytes); break;
    case FETCH:
      plan_fetch(&plan, topic, size);
      expect_fetch_answer(&plan, size);
      break;
    case METADATA: // all topics; no automatic creation, no authorised operations
      if (version >= 1) put_count(&plan.head, is_flexible(api, version), (uint32_t)-1);
      else put32(&plan.head, 0);
      if (version >= 4) put8(&plan.head, 0);
      if (version >= 8 && version <= 10) put8(&plan.head, 0);
      if (version >= 8) put8(&plan.head, 0);
      put_tags(&plan.head, is_flexible(api, version));
      break;
    case API_VERSIONS:
      if (version >= 3) {
        put_string(&plan.head, 1, "headgate-bench");
        put_string(&plan.head, 1, "1");
        put_tags(&plan.head, 1);
      }
      break;
    default: fprintf(stderr, "no such api\n"), exit(2);
  }
  close_frame(&plan.head, plan.tail.length);
  close_frame(&plan.expected, 0);
  return plan;
}

// The answer's bytes that must arrive unchanged: all of a plain one; up to the leader hints, whose address a proxy may
// rewrite, of one that has them; none of what every proxy of Kafka must change.
static size_t comparable(const Plan *plan) {
  if (!plan->dummy || plan->api == METADATA || plan->api == API_VERSIONS) return 0;
  return plan->hints ? plan->expected.length - 32 : plan->expected.length;
}
#endif
