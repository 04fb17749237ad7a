"""Client program for aiokafka. See ../README.md."""
import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError, KafkaTimeoutError, for_code

from program import Member, delivered, records, serve

# A commit that fails so may go well later: the group rebalances, or this member's share has changed.
REBALANCED = (CommitFailedError, IllegalStateError, KafkaTimeoutError)
ASSIGNORS = {"range": RangePartitionAssignor, "cooperative": StickyPartitionAssignor}


def settings(command, **more):
    return {
        "bootstrap_servers": command["bootstrap"],
        "client_id": command.get("clientId", "matrix-aiokafka"),
        **({"metadata_max_age_ms": command["metadataMs"]} if "metadataMs" in command else {}),
        **more,
    }


def error_fields(error):
    code = getattr(error, "errno", None)
    return {"code": code if isinstance(code, int) and code > 0 else type(error).__name__, "message": str(error)[:300]}


async def produce(command, emit):
    transactional, codec = command.get("transactionalId"), command.get("codec", "none")
    acks = command.get("acks", -1)
    producer = AIOKafkaProducer(
        **settings(
            command,
            acks="all" if acks == -1 else acks,
            enable_idempotence=bool(command.get("idempotent") or transactional),
            compression_type=None if codec == "none" else codec,
            linger_ms=5,
            max_request_size=8 << 20,
            transactional_id=transactional,
        )
    )
    await producer.start()
    pending = set()

    async def send(record, transaction=None):
        named = {} if transaction is None else {"transaction": transaction}
        if command.get("sent"):
            emit("sent", **record.origin(), **named)

        def failed(error):
            emit("failed", **record.origin(), **named, **error_fields(error))

        def answered(future):
            pending.discard(future)
            if future.exception() is not None:
                return failed(future.exception())
            placed = future.result()
            fields = record.fields()
            if placed is not None:
                fields.update(partition=placed.partition, offset=placed.offset)  # its timestamp is the batch's
            emit("acknowledged", **fields, **named)

        try:
            future = await producer.send(
                record.topic,
                record.value,
                record.key_bytes,
                partition=record.partition,
                timestamp_ms=record.timestamp,
                headers=record.headers,
            )
            pending.add(future)
            future.add_done_callback(answered)
        except Exception as error:  # what send() itself refuses
            failed(error)

    async def settled():
        await producer.flush()
        while pending:
            await asyncio.wait(set(pending))
        await asyncio.sleep(0)

    try:
        if not transactional:
            await paced(command, send)
            await settled()
            return
        each, abort_every = command.get("perTransaction", command.get("count", 1)), command.get("abortEvery", 0)
        all_records = list(records(command))
        for number, first in enumerate(range(0, len(all_records), each), 1):
            name = f"{transactional}-{number}"
            await producer.begin_transaction()
            for record in all_records[first : first + each]:
                await send(record, name)
            await settled()
            abort = abort_every > 0 and number % abort_every == 0
            await (producer.abort_transaction() if abort else producer.commit_transaction())
            outcome = "aborted" if abort else "committed"
            emit("transaction", producer=command.get("producer", "p"), transaction=name, outcome=outcome)
    finally:
        await producer.stop()


async def paced(command, send):
    rate = command.get("rate", 0)
    clock = asyncio.get_running_loop().time
    began, unpaced = clock(), {**command, "rate": 0}
    for number, record in enumerate(records(unpaced)):
        if command.get("stopped"):
            return
        if rate:
            await asyncio.sleep(max(0.0, began + number / rate - clock()))
        await send(record)


class Listener(ConsumerRebalanceListener):
    """aiokafka rebalances while records are worked on: what is left of them is not this member's any more."""

    def __init__(self, member, commit):
        self.member = member
        self.commit = commit
        self.rebalances = 0

    def on_partitions_assigned(self, assigned):
        self.member.partitions("assigned", [[one.topic, one.partition] for one in assigned])

    async def on_partitions_revoked(self, revoked):
        self.rebalances += 1
        await self.commit()
        self.member.partitions("revoked", [[one.topic, one.partition] for one in revoked])


async def consume(command, emit):
    member, commit = Member(command, emit), command.get("commit", "none")
    more = {}
    if "assignor" in command:
        more["partition_assignment_strategy"] = [ASSIGNORS[command["assignor"]]]
    if "instanceId" in command:
        more["group_instance_id"] = command["instanceId"]
    consumer = AIOKafkaConsumer(
        **settings(
            command,
            group_id=command["group"],
            auto_offset_reset="earliest",
            isolation_level=command.get("isolation", "read_uncommitted"),
            enable_auto_commit=commit == "auto",
            auto_commit_interval_ms=1000,
            session_timeout_ms=command.get("sessionMs", 10_000),
            heartbeat_interval_ms=1000,
            max_partition_fetch_bytes=4 << 20,
            **more,
        )
    )

    async def commit_all():
        if commit not in ("record", "batch"):
            return
        offsets = member.take()
        if not offsets:
            return
        try:
            await consumer.commit({TopicPartition(t, p): o for (t, p), o in offsets.items()})
        except KafkaError as error:
            if not error.retriable and not isinstance(error, REBALANCED):
                raise
            return member.not_committed(offsets, error, error_fields(error))
        member.committed(offsets)

    listener = Listener(member, commit_all)
    await consumer.start()
    consumer.subscribe(command["topics"], listener=listener)
    seen, wanted, work = 0, command.get("count", 0), command.get("workMs", 0) / 1000
    try:
        while not command.get("stopped") and (seen < wanted or wanted == 0):
            polled = await consumer.getmany(timeout_ms=200, max_records=min(500, wanted - seen) if wanted else 500)
            rebalances = listener.rebalances
            for message in (one for batch in polled.values() for one in batch):
                if listener.rebalances != rebalances:
                    break
                fields = delivered(
                    message.topic,
                    message.partition,
                    message.offset,
                    message.key,
                    message.value,
                    list(message.headers),
                    message.timestamp,
                )
                member.delivered(fields)
                if work:
                    await asyncio.sleep(work)
                if listener.rebalances != rebalances:
                    break
                member.done(fields)
                seen += 1
                if commit == "record":
                    await commit_all()
            if commit == "batch":
                await commit_all()
            for topic, partition in member.to_tell():
                place = TopicPartition(topic, partition)
                member.position(topic, partition, await consumer.position(place), consumer.highwater(place))
        if commit == "end":
            commit = "batch"
        await commit_all()
    finally:
        held = [[one.topic, one.partition] for one in consumer.assignment()]
        await consumer.stop()
        member.partitions("revoked", held)


def _check(errors):
    """Raises for the first entry (name, code, …) with an error code."""
    for entry in errors:
        if entry[1] != 0:
            raise for_code(entry[1])(entry)


async def _create(client, command):
    answer = await client.create_topics([NewTopic(command["topic"], command["partitions"], 1)])
    _check(answer.topic_errors)


async def _delete(client, command):
    answer = await client.delete_topics([command["topic"]])
    _check(answer.topic_error_codes)


async def _partitions(client, topic):
    [description] = await client.describe_topics([topic])
    _check([(topic, description["error_code"])])
    return sorted(one["partition"] for one in description["partitions"])


async def _describe(client, command):
    return [{"name": command["topic"], "partitions": await _partitions(client, command["topic"])}]


async def _add(client, command):
    await client.create_partitions({command["topic"]: NewPartitions(command["partitions"])})


async def _configs(client, command):
    [answer] = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, command["topic"])])
    [resource] = answer.resources
    _check([(command["topic"], resource[0])])
    return sorted([entry[0], entry[1]] for entry in resource[4])


async def _alter(client, command):
    [answer] = await client.alter_configs(
        [ConfigResource(ConfigResourceType.TOPIC, command["topic"], configs=command["configs"])]
    )
    _check([(command["topic"], resource[0]) for resource in answer.resources])


async def _cluster(client, _):
    cluster = await client.describe_cluster()
    brokers = [{"nodeId": one["node_id"], "host": one["host"], "port": one["port"]} for one in cluster["brokers"]]
    return {"clusterId": cluster.get("cluster_id"), "brokers": brokers}


async def _topics(client, _):
    return sorted(await client.list_topics())


async def _groups(client, _):
    return sorted(one[0] for one in await client.list_consumer_groups())


async def _group(client, command):
    [answer] = await client.describe_consumer_groups([command["group"]])
    return [[one[1], one[0], one[2], len(one[5])] for one in answer.groups]


async def _group_offsets(client, command):
    answer = await client.list_consumer_group_offsets(command["group"])
    return sorted([place.partition, one.offset] for place, one in answer.items() if place.topic == command["topic"])


OPERATIONS = {
    "createTopic": _create,
    "deleteTopic": _delete,
    "addPartitions": _add,
    "describeTopic": _describe,
    "listTopics": _topics,
    "describeConfigs": _configs,
    "alterConfigs": _alter,
    "describeCluster": _cluster,
    "listGroups": _groups,
    "describeGroup": _group,
    "groupOffsets": _group_offsets,
}


async def admin(command, emit):
    if command["op"] == "endOffsets":
        consumer = AIOKafkaConsumer(command["topic"], **settings(command))
        await consumer.start()
        try:
            partitions = consumer.partitions_for_topic(command["topic"])
            offsets = await consumer.end_offsets([TopicPartition(command["topic"], one) for one in partitions])
        finally:
            await consumer.stop()
        emit("result", op=command["op"], result=sorted([place.partition, one] for place, one in offsets.items()))
        return
    if command["op"] not in OPERATIONS:
        raise NotImplementedError(command["op"])
    client = AIOKafkaAdminClient(**settings(command))
    await client.start()
    try:
        emit("result", op=command["op"], result=await OPERATIONS[command["op"]](client, command))
    finally:
        await client.close()


def in_loop(handler):
    return lambda command, emit: asyncio.run(handler(command, emit))


serve({"produce": in_loop(produce), "consume": in_loop(consume), "admin": in_loop(admin)}, error_fields)
