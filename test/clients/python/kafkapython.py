"""Client program for kafka-python. See ../README.md."""
import time

from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import (
    CommitFailedError,
    IllegalGenerationError,
    KafkaError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafka.structs import OffsetAndMetadata

from program import Member, delivered, in_transactions, records, serve

# A commit that fails so may go well later: the group rebalances, or has given this member up.
REBALANCED = (CommitFailedError, IllegalGenerationError, RebalanceInProgressError, UnknownMemberIdError)
ASSIGNORS = {"range": RangePartitionAssignor, "cooperative": CooperativeStickyAssignor}


def settings(command, **more):
    return {
        "bootstrap_servers": command["bootstrap"].split(","),
        "client_id": command.get("clientId", "matrix-kafka-python"),
        **({"metadata_max_age_ms": command["metadataMs"]} if "metadataMs" in command else {}),
        **more,
    }


def error_fields(error):
    code = getattr(error, "errno", None)
    return {"code": code if isinstance(code, int) and code > 0 else type(error).__name__, "message": str(error)[:300]}


def produce(command, emit):
    transactional, codec = command.get("transactionalId"), command.get("codec", "none")
    acks = command.get("acks", -1)
    producer = KafkaProducer(
        **settings(
            command,
            acks="all" if acks == -1 else acks,
            enable_idempotence=bool(command.get("idempotent") or transactional),
            compression_type=None if codec == "none" else codec,
            linger_ms=5,
            max_request_size=8 << 20,
            **({"transactional_id": transactional} if transactional else {}),
        )
    )

    def send(record, transaction=None):
        named = {} if transaction is None else {"transaction": transaction}
        if command.get("sent"):
            emit("sent", **record.origin(), **named)

        def failed(error):
            emit("failed", **record.origin(), **named, **error_fields(error))

        def acknowledged(placed):
            fields = {**record.fields(), "timestamp": placed.timestamp}
            if acks != 0:  # without an answer its offset is made up
                fields["offset"] = placed.offset
            emit("acknowledged", **fields, **named, partition=placed.partition)

        try:
            future = producer.send(
                record.topic,
                record.value,
                record.key_bytes,
                headers=record.headers,
                partition=record.partition,
                timestamp_ms=record.timestamp,
            )
            future.add_callback(acknowledged)
            future.add_errback(failed)
        except Exception as error:  # what send() itself refuses
            failed(error)

    if not transactional:
        for record in records(command):
            send(record)
        producer.flush(60)
        producer.close()
        return

    def end(abort):
        producer.flush(60)
        if abort:
            producer.abort_transaction()
        else:
            producer.commit_transaction()

    producer.init_transactions()
    in_transactions(command, emit, send, producer.begin_transaction, end)
    producer.close()


class Listener(ConsumerRebalanceListener):
    def __init__(self, member):
        self.member = member

    def on_partitions_assigned(self, assigned):
        self.member.partitions("assigned", [[one.topic, one.partition] for one in assigned])

    def on_partitions_revoked(self, revoked):
        self.member.partitions("revoked", [[one.topic, one.partition] for one in revoked])

    def on_partitions_lost(self, lost):
        self.member.partitions("lost", [[one.topic, one.partition] for one in lost])


def consume(command, emit):
    member, commit = Member(command, emit), command.get("commit", "none")
    more = {}
    if "assignor" in command:
        more["partition_assignment_strategy"] = [ASSIGNORS[command["assignor"]]]
    if "instanceId" in command:
        more["group_instance_id"] = command["instanceId"]
    consumer = KafkaConsumer(
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

    def commit_all():
        offsets = member.take()
        if not offsets:
            return
        try:
            consumer.commit({TopicPartition(t, p): OffsetAndMetadata(o, "", -1) for (t, p), o in offsets.items()})
        except KafkaError as error:
            if not error.retriable and not isinstance(error, REBALANCED):
                raise
            return member.not_committed(offsets, error, error_fields(error))
        member.committed(offsets)

    # In 3.0.12 a join that outlasts a poll() may hang for ever, directly, too: no needless second join (it comes where the
    # first one led without metadata), and long polls.
    for topic in command["topics"]:
        consumer.partitions_for_topic(topic)
    consumer.subscribe(command["topics"], listener=Listener(member))
    seen, wanted, work = 0, command.get("count", 0), command.get("workMs", 0) / 1000
    try:
        while not command.get("stopped") and (seen < wanted or wanted == 0):
            polled = consumer.poll(timeout_ms=1000, max_records=min(500, wanted - seen) if wanted else 500)
            for message in (one for batch in polled.values() for one in batch):
                fields = delivered(
                    message.topic,
                    message.partition,
                    message.offset,
                    message.key,
                    message.value,
                    message.headers,
                    message.timestamp,
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
                member.position(topic, partition, consumer.position(place), consumer.highwater(place))
        if commit in ("end", "batch"):
            commit_all()
    finally:
        consumer.close()


def _topic(client, topic):
    [description] = client.describe_topics([topic])
    if description["error_code"] != 0:
        raise _coded(description["error_code"])
    return description


def _coded(code):
    error = RuntimeError(f"error code {code}")
    error.errno = code
    return error


def _partitions(client, topic):
    return sorted(one["partition_index"] for one in _topic(client, topic)["partitions"])


def _configs(client, command):
    resource = ConfigResource(ConfigResourceType.TOPIC, command["topic"])
    answer = client.describe_configs([resource], config_filter="all")
    return sorted([name, entry["value"]] for name, entry in answer["topic"][command["topic"]].items())


def _alter(client, command):
    resource = ConfigResource(ConfigResourceType.TOPIC, command["topic"], command["configs"])
    return str(client.alter_configs([resource], raise_on_unknown=False)["topic"][command["topic"]])


def _cluster(client, _):
    cluster = client.describe_cluster()
    brokers = [{"nodeId": one["broker_id"], "host": one["host"], "port": one["port"]} for one in cluster["brokers"]]
    return {"clusterId": cluster["cluster_id"], "brokers": brokers}


def _group(client, command):
    group = client.describe_groups([command["group"]])[command["group"]]
    return [[command["group"], str(group["group_state"]), len(group["members"])]]


def _group_offsets(client, command):
    answer = client.list_group_offsets([command["group"]])[command["group"]]
    return sorted([place.partition, one.offset] for place, one in answer.items() if place.topic == command["topic"])


def _end_offsets(client, command):
    wanted = {TopicPartition(command["topic"], one): OffsetSpec.LATEST for one in _partitions(client, command["topic"])}
    return sorted([place.partition, one.offset] for place, one in client.list_partition_offsets(wanted).items())


def _nothing(_):
    return None


OPERATIONS = {
    "createTopic": lambda a, c: _nothing(
        a.create_topics({c["topic"]: {"num_partitions": c["partitions"], "replication_factor": 1}})
    ),
    "deleteTopic": lambda a, c: _nothing(a.delete_topics([c["topic"]])),
    "addPartitions": lambda a, c: _nothing(a.create_partitions({c["topic"]: c["partitions"]})),
    "describeTopic": lambda a, c: [{"name": c["topic"], "partitions": _partitions(a, c["topic"])}],
    "listTopics": lambda a, c: sorted(a.list_topics()),
    "describeConfigs": _configs,
    "alterConfigs": _alter,
    "describeCluster": _cluster,
    "listGroups": lambda a, c: sorted(one["group_id"] for one in a.list_groups()),
    "describeGroup": _group,
    "deleteGroup": lambda a, c: a.delete_groups([c["group"]])[c["group"]],
    "groupOffsets": _group_offsets,
    "endOffsets": _end_offsets,
}


def admin(command, emit):
    client = KafkaAdminClient(**settings(command))
    try:
        emit("result", op=command["op"], result=OPERATIONS[command["op"]](client, command))
    finally:
        client.close()


serve({"produce": produce, "consume": consume, "admin": admin}, error_fields)
