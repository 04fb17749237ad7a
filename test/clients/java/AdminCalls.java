import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.DescribeTopicsResult;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** The admin command. */
final class AdminCalls {
    private AdminCalls() { }

    static void run(Main.Command command) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", command.text("bootstrap", ""));
        settings.put("client.id", command.text("clientId", "matrix-java"));
        settings.put("default.api.timeout.ms", "15000");
        settings.put("request.timeout.ms", "10000");
        try (Admin admin = Admin.create(settings)) {
            ObjectNode line = Main.JSON.createObjectNode().put("op", command.text("op", ""));
            call(command, admin, line);
            if (!line.has("result")) line.putNull("result");
            command.emit("result", line);
        }
    }

    private static void call(Main.Command command, Admin admin, ObjectNode line) throws Exception {
        String topic = command.text("topic", "");
        String group = command.text("group", "");
        int partitions = command.number("partitions", 1);
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        switch (command.text("op", "")) {
            case "createTopic" -> admin.createTopics(List.of(new NewTopic(topic, partitions, (short) command.number("replicas", 1)))).all().get();
            case "deleteTopic" -> admin.deleteTopics(List.of(topic)).all().get();
            case "addPartitions" -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(partitions))).all().get();
            case "describeTopic" -> {
                TopicDescription description = describe(admin, topic);
                ObjectNode one = line.putArray("result").addObject().put("name", description.name());
                ArrayNode list = one.putArray("partitions");
                description.partitions().forEach(each -> list.add(each.partition()));
            }
            case "listTopics" -> {
                ArrayNode list = line.putArray("result");
                new TreeSet<>(admin.listTopics().names().get()).forEach(list::add);
            }
            case "describeConfigs" -> {
                Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
                Map<String, String> sorted = new TreeMap<>();
                for (ConfigEntry entry : config.entries()) sorted.put(entry.name(), entry.value());
                ArrayNode list = line.putArray("result");
                sorted.forEach((name, value) -> list.addArray().add(name).add(value));
            }
            case "alterConfigs" -> {
                Map<ConfigResource, Collection<AlterConfigOp>> changes = new HashMap<>();
                List<AlterConfigOp> ops = new java.util.ArrayList<>();
                command.fields.path("configs").fields().forEachRemaining(entry -> ops.add(
                    new AlterConfigOp(new ConfigEntry(entry.getKey(), entry.getValue().asText()), AlterConfigOp.OpType.SET)));
                changes.put(resource, ops);
                admin.incrementalAlterConfigs(changes).all().get();
            }
            case "describeCluster" -> {
                DescribeClusterResult cluster = admin.describeCluster();
                ObjectNode result = line.putObject("result").put("clusterId", cluster.clusterId().get());
                ArrayNode list = result.putArray("brokers");
                for (Node node : cluster.nodes().get()) {
                    list.addObject().put("nodeId", node.id()).put("host", node.host()).put("port", node.port());
                }
            }
            case "listGroups" -> {
                TreeSet<String> sorted = new TreeSet<>();
                admin.listConsumerGroups().all().get().forEach(each -> sorted.add(each.groupId()));
                ArrayNode list = line.putArray("result");
                sorted.forEach(list::add);
            }
            case "describeGroup" -> {
                ConsumerGroupDescription one = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
                line.putArray("result").addArray().add(group).add(one.state().toString()).add(one.members().size());
            }
            case "deleteGroup" -> admin.deleteConsumerGroups(List.of(group)).all().get();
            case "groupOffsets" -> {
                TreeMap<Integer, Long> sorted = new TreeMap<>();
                admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((partition, offset) -> {
                    if (partition.topic().equals(topic) && offset != null) sorted.put(partition.partition(), offset.offset());
                });
                pairs(line, sorted);
            }
            case "endOffsets" -> {
                Map<TopicPartition, OffsetSpec> wanted = new HashMap<>();
                describe(admin, topic).partitions().forEach(each ->
                    wanted.put(new TopicPartition(topic, each.partition()), OffsetSpec.latest()));
                TreeMap<Integer, Long> sorted = new TreeMap<>();
                admin.listOffsets(wanted).all().get().forEach((partition, info) -> sorted.put(partition.partition(), info.offset()));
                pairs(line, sorted);
            }
            default -> throw new IllegalArgumentException("unknown op");
        }
    }

    private static void pairs(ObjectNode line, Map<Integer, Long> sorted) {
        ArrayNode list = line.putArray("result");
        sorted.forEach((partition, offset) -> list.addArray().add(partition).add(offset));
    }

    /** `values()` went with 4.0, `topicNameValues()` came with 3.1. */
    @SuppressWarnings("unchecked")
    private static TopicDescription describe(Admin admin, String topic) throws Exception {
        DescribeTopicsResult answer = admin.describeTopics(List.of(topic));
        Map<String, KafkaFuture<TopicDescription>> futures;
        try {
            futures = (Map<String, KafkaFuture<TopicDescription>>) DescribeTopicsResult.class.getMethod("topicNameValues").invoke(answer);
        } catch (NoSuchMethodException old) {
            futures = (Map<String, KafkaFuture<TopicDescription>>) DescribeTopicsResult.class.getMethod("values").invoke(answer);
        }
        return futures.get(topic).get();
    }
}
