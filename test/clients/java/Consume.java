import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The consume command: one group member. */
final class Consume implements ConsumerRebalanceListener {
    private final Main.Command command;
    private final String member;
    private final String group;
    private final String commit;
    private final Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
    private static final Map<String, Class<?>> ASSIGNORS = Map.of(
        "range", RangeAssignor.class,
        "roundrobin", RoundRobinAssignor.class,
        "sticky", StickyAssignor.class,
        "cooperative", CooperativeStickyAssignor.class);
    /** How long commits may fail before a member gives up: longer than a broker needs to come back. */
    private static final long PATIENCE_MS = 60_000;
    /** When the first of the commits failed that have failed since one went well; 0: the last one went well. */
    private long failingSince;

    private Consume(Main.Command command) {
        this.command = command;
        this.member = command.text("member", command.id);
        this.group = command.text("group", "");
        this.commit = command.text("commit", "none");
    }

    static void run(Main.Command command) throws Exception {
        Consume consume = new Consume(command);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(consume.settings())) {
            List<String> topics = new ArrayList<>();
            for (JsonNode topic : command.fields.path("topics")) topics.add(topic.asText());
            consumer.subscribe(topics, consume);
            command.onStop = consumer::wakeup;
            try {
                consume.loop(consumer);
            } catch (WakeupException stopped) {
                // The loop's end.
            }
            if (consume.commit.equals("end") || consume.commit.equals("batch")) consume.commit(consumer);
            command.onStop = () -> { };
        }
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", command.text("bootstrap", ""));
        settings.put("client.id", command.text("clientId", "matrix-java"));
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        if (command.fields.has("metadataMs")) settings.put("metadata.max.age.ms", command.fields.get("metadataMs").asText());
        settings.put("isolation.level", command.text("isolation", "read_uncommitted"));
        settings.put("enable.auto.commit", String.valueOf(commit.equals("auto")));
        settings.put("auto.commit.interval.ms", "1000");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        if (command.text("protocol", "classic").equals("consumer")) {
            settings.put("group.protocol", "consumer");
        } else {
            settings.put("session.timeout.ms", String.valueOf(command.number("sessionMs", 10_000)));
            settings.put("heartbeat.interval.ms", "1000");
            Class<?> assignor = ASSIGNORS.get(command.text("assignor", ""));
            if (assignor != null) settings.put("partition.assignment.strategy", assignor.getName());
        }
        String instance = command.text("instanceId", null);
        if (instance != null) settings.put("group.instance.id", instance);
        return settings;
    }

    private void loop(KafkaConsumer<byte[], byte[]> consumer) throws InterruptedException {
        int wanted = command.number("count", 0);
        int workMs = command.number("workMs", 0);
        int positionsMs = command.number("positionsMs", 0);
        long told = System.currentTimeMillis();
        int seen = 0;
        while (!command.stopped) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                if (command.stopped) return;
                ObjectNode line = Records.fields(record).put("member", member).put("group", group);
                command.emit("delivered", line);
                if (workMs > 0) Thread.sleep(workMs);
                line.remove(List.of("valueHash", "headersHash", "timestamp", "key", "producer", "sequence"));
                command.emit("done", line);
                positions.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
                if (commit.equals("record")) commitAll(consumer);
                if (++seen == wanted) return;
            }
            if (commit.equals("batch")) commitAll(consumer);
            if (positionsMs == 0 || System.currentTimeMillis() - told < positionsMs) continue;
            told = System.currentTimeMillis();
            for (TopicPartition partition : consumer.assignment()) tellPosition(consumer, partition);
        }
    }

    private void tellPosition(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition) {
        double lag = -1;
        for (Metric metric : consumer.metrics().values()) {
            Map<String, String> tags = metric.metricName().tags();
            boolean its = List.of(partition.topic(), partition.topic().replace('.', '_')).contains(tags.getOrDefault("topic", "")) && String.valueOf(partition.partition()).equals(tags.get("partition"));
            if (its && metric.metricName().name().equals("records-lag") && metric.metricValue() instanceof Double value && !value.isNaN()) lag = value;
        }
        command.emit("position", Main.JSON.createObjectNode().put("member", member).put("group", group)
            .put("topic", partition.topic()).put("partition", partition.partition())
            .put("position", consumer.position(partition)).put("end", -1).put("lag", (long) lag));
    }

    /** What failed and may go well later goes out with the next commit, save what this member has lost by then. */
    private void commitAll(KafkaConsumer<byte[], byte[]> consumer) {
        if (positions.isEmpty()) return;
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>(positions);
        try {
            commit(consumer);
            failingSince = 0;
        } catch (KafkaException error) {
            boolean passes = error instanceof RetriableException || error instanceof CommitFailedException || error instanceof RebalanceInProgressException;
            if (failingSince == 0) failingSince = System.currentTimeMillis();
            if (!passes || System.currentTimeMillis() - failingSince > PATIENCE_MS) throw error;
            command.error("error", error, Main.JSON.createObjectNode());
            offsets.forEach(positions::putIfAbsent);
        }
    }

    private void commit(KafkaConsumer<byte[], byte[]> consumer) {
        if (positions.isEmpty()) return;
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>(positions);
        positions.clear();
        Main.flush();
        try {
            consumer.commitSync(offsets);
        } catch (WakeupException stopped) {
            consumer.commitSync(offsets);
        }
        offsets.forEach((partition, offset) -> command.emit("committed", Main.JSON.createObjectNode()
            .put("member", member).put("group", group).put("topic", partition.topic()).put("partition", partition.partition()).put("offset", offset.offset())));
    }

    private void emit(String event, Collection<TopicPartition> partitions) {
        ObjectNode line = Main.JSON.createObjectNode().put("member", member).put("group", group);
        ArrayNode list = line.putArray("partitions");
        for (TopicPartition one : partitions) list.addArray().add(one.topic()).add(one.partition());
        if (!event.equals("assigned")) positions.keySet().removeAll(partitions);
        command.emit(event, line);
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        emit("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        emit("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        emit("lost", partitions);
    }
}
