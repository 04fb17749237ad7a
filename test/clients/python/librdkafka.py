"""Client program for librdkafka (confluent-kafka). See ../README.md."""
import json
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from program import Member, delivered, in_transactions, records, serve


def settings(command, **more):
    return {
        "bootstrap.servers": command["bootstrap"],
        "client.id": command.get("clientId", "matrix-librdkafka"),
        "log_level": 2,
        **({"topic.metadata.refresh.interval.ms": command["metadataMs"]} if "metadataMs" in command else {}),
        **more,
    }


ASSIGNORS = {"range": "range", "roundrobin": "roundrobin", "cooperative": "cooperative-sticky"}

# Why a commit may fail for now: the coordinator is elsewhere, away or loading; or the group rebalances.
COORDINATOR = {
    KafkaError._WAIT_COORD,
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}
MEMBERSHIP = {KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID}


def error_fields(error):
    inner = error.args[0] if isinstance(error, KafkaException) else error
    if not isinstance(inner, KafkaError):
        return {"code": type(error).__name__, "message": str(error)}
    return {"code": inner.code() if inner.code() >= 0 else inner.name(), "message": inner.str()}


def produce(command, emit):
    transactional = command.get("transactionalId")
    producer = Producer(
        settings(
            command,
            **{
                "acks": command.get("acks", -1),
                "enable.idempotence": bool(command.get("idempotent") or transactional),
                "compression.codec": command.get("codec", "none"),
                "message.max.bytes": 8 << 20,
                "linger.ms": 5,
                **({"transactional.id": transactional} if transactional else {}),
            },
        )
    )

    def send(record, transaction=None):
        named = {} if transaction is None else {"transaction": transaction}
        if command.get("sent"):
            emit("sent", **record.origin(), **named)

        def answered(error, message):
            if error is not None:
                emit("failed", **record.origin(), **named, **error_fields(error))
            else:
                fields = {**record.fields(), "timestamp": message.timestamp()[1]}
                emit("acknowledged", **fields, **named, partition=message.partition(), offset=message.offset())

        more = {}
        if record.partition is not None:
            more["partition"] = record.partition
        if record.timestamp is not None:
            more["timestamp"] = record.timestamp
        while True:
            try:
                producer.produce(
                    record.topic, record.value, record.key_bytes, headers=record.headers, on_delivery=answered, **more
                )
                break
            except BufferError:
                producer.poll(0.1)
            except KafkaException as error:
                return answered(error.args[0], None)
        producer.poll(0)

    if not transactional:
        for record in records(command):
            send(record)
        producer.flush(60)
        return

    def end(abort):
        producer.flush(60)
        if abort:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)

    producer.init_transactions(30)
    in_transactions(command, emit, send, producer.begin_transaction, end)


def consume(command, emit):
    member, commit = Member(command, emit), command.get("commit", "none")
    more = {} if command.get("protocol") == "consumer" else {"session.timeout.ms": command.get("sessionMs", 10_000), "heartbeat.interval.ms": 1000}
    if "assignor" in command and command.get("protocol") != "consumer":
        more["partition.assignment.strategy"] = ASSIGNORS[command["assignor"]]
    if "instanceId" in command:
        more["group.instance.id"] = command["instanceId"]
    lags = {}

    def statistics(text):
        for topic, one in json.loads(text)["topics"].items():
            for number, partition in one["partitions"].items():
                lags[(topic, int(number))] = partition["consumer_lag_stored"]

    if "positionsMs" in command:
        more.update({"statistics.interval.ms": command["positionsMs"], "stats_cb": statistics})
    consumer = Consumer(
        settings(
            command,
            **{
                "group.id": command["group"],
                "group.protocol": command.get("protocol", "classic"),
                "auto.offset.reset": "earliest",
                "isolation.level": command.get("isolation", "read_uncommitted"),
                "enable.auto.commit": commit == "auto",
                "auto.commit.interval.ms": 1000,
                **more,
            },
        )
    )

    failing_since = None

    def commit_all():
        """Why it is to be tried again, if so: other clients do that themselves, this one leaves it to the application."""
        nonlocal failing_since
        offsets = member.take()
        if not offsets:
            return None
        try:
            consumer.commit(offsets=[TopicPartition(t, p, o) for (t, p), o in offsets.items()], asynchronous=False)
        except KafkaException as error:
            failing_since = failing_since or time.monotonic()
            why = error.args[0].code()
            if why not in COORDINATOR | MEMBERSHIP or time.monotonic() - failing_since > 60:
                raise
            emit("error", **error_fields(error))
            member.put_back(offsets)
            return why
        failing_since = None
        member.committed(offsets)
        return None

    def watch(event):
        return lambda _, partitions: member.partitions(event, [[one.topic, one.partition] for one in partitions])

    consumer.subscribe(command["topics"], on_assign=watch("assigned"), on_revoke=watch("revoked"), on_lost=watch("lost"))
    seen, wanted, work = 0, command.get("count", 0), command.get("workMs", 0) / 1000
    while not command.get("stopped") and (seen < wanted or wanted == 0):
        batch = consumer.consume(min(500, wanted - seen) if wanted else 500, 0.2)
        for message in batch:
            if message.error() is not None:
                emit("error", **error_fields(message.error()))
                continue
            fields = delivered(
                message.topic(),
                message.partition(),
                message.offset(),
                message.key(),
                message.value(),
                message.headers(),
                message.timestamp()[1],
            )
            member.delivered(fields)
            if work:
                time.sleep(work)
            member.done(fields)
            seen += 1
            if commit == "record":
                commit_all()
        if commit == "batch":
            commit_all()
        for topic, partition in member.to_tell():
            place = TopicPartition(topic, partition)
            [position] = consumer.position([place])
            _, end = consumer.get_watermark_offsets(place, cached=True)
            member.position(topic, partition, position.offset, end, lags.get((topic, partition)))
    if commit in ("end", "batch"):
        while commit_all() in COORDINATOR:
            time.sleep(0.2)
    consumer.close()


def _partitions(admin, topic):
    description = admin.list_topics(topic, timeout=10).topics[topic]
    if description.error is not None:
        raise KafkaException(description.error)
    return sorted(description.partitions)


def _first(futures):
    return [future.result(15) for future in futures.values()][0]


def _alter(admin, command):
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in command["configs"].items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, command["topic"], incremental_configs=entries)
    _first(admin.incremental_alter_configs([resource]))


def _configs(admin, command):
    answer = _first(admin.describe_configs([ConfigResource(ResourceType.TOPIC, command["topic"])]))
    return sorted([name, entry.value] for name, entry in answer.items())


def _cluster(admin, _):
    cluster = admin.describe_cluster().result(15)
    brokers = [{"nodeId": node.id, "host": node.host, "port": node.port} for node in cluster.nodes]
    return {"clusterId": cluster.cluster_id, "brokers": brokers}


def _group(admin, command):
    group = _first(admin.describe_consumer_groups([command["group"]]))
    return [[group.group_id, group.state.name, len(group.members)]]


def _group_offsets(admin, command):
    wanted = [TopicPartition(command["topic"], partition) for partition in _partitions(admin, command["topic"])]
    answer = _first(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(command["group"], wanted)]))
    return sorted([one.partition, one.offset] for one in answer.topic_partitions)


def _end_offsets(admin, command):
    topic = command["topic"]
    wanted = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in _partitions(admin, topic)}
    answer = admin.list_offsets(wanted)
    return sorted([place.partition, future.result(15).offset] for place, future in answer.items())


OPERATIONS = {
    "createTopic": lambda a, c: _first(a.create_topics([NewTopic(c["topic"], c["partitions"], 1)])),
    "deleteTopic": lambda a, c: _first(a.delete_topics([c["topic"]])),
    "addPartitions": lambda a, c: _first(a.create_partitions([NewPartitions(c["topic"], c["partitions"])])),
    "describeTopic": lambda a, c: [{"name": c["topic"], "partitions": _partitions(a, c["topic"])}],
    "listTopics": lambda a, c: sorted(a.list_topics(timeout=10).topics),
    "describeConfigs": _configs,
    "alterConfigs": _alter,
    "describeCluster": _cluster,
    "listGroups": lambda a, c: sorted(one.group_id for one in a.list_consumer_groups().result(15).valid),
    "describeGroup": _group,
    "deleteGroup": lambda a, c: _first(a.delete_consumer_groups([c["group"]])),
    "groupOffsets": _group_offsets,
    "endOffsets": _end_offsets,
}


def admin(command, emit):
    client = AdminClient(settings(command))
    emit("result", op=command["op"], result=OPERATIONS[command["op"]](client, command))


serve({"produce": produce, "consume": consume, "admin": admin}, error_fields)
