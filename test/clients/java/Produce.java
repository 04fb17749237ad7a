import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The produce command. */
final class Produce {
    private Produce() { }

    static void run(Main.Command command) throws Exception {
        Properties settings = new Properties();
        String transactionalId = command.text("transactionalId", null);
        settings.put("bootstrap.servers", command.text("bootstrap", ""));
        settings.put("client.id", command.text("clientId", "matrix-java"));
        settings.put("acks", String.valueOf(command.number("acks", -1)));
        settings.put("enable.idempotence", String.valueOf(command.flag("idempotent") || transactionalId != null));
        settings.put("compression.type", command.text("codec", "none"));
        settings.put("linger.ms", "5");
        if (command.fields.has("metadataMs")) settings.put("metadata.max.age.ms", command.fields.get("metadataMs").asText());
        settings.put("max.request.size", String.valueOf(8 << 20));
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        if (transactionalId != null) settings.put("transactional.id", transactionalId);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            if (transactionalId == null) plain(command, producer);
            else transactions(command, producer);
        }
    }

    private static void plain(Main.Command command, KafkaProducer<byte[], byte[]> producer) {
        int start = command.number("start", 0);
        int end = start + command.number("count", 1);
        double rate = command.fields.path("rate").asDouble(0);
        long began = System.nanoTime();
        for (int i = start; i < end && !command.stopped; i++) {
            if (rate > 0) {
                long due = began + (long) ((i - start) * 1e9 / rate);
                for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) LockSupport.parkNanos(left);
            }
            ProducerRecord<byte[], byte[]> record = Records.make(command, i);
            ObjectNode line = Records.fields(record);
            if (command.flag("sent")) command.emit("sent", line);
            producer.send(record, (metadata, error) -> {
                if (error != null) command.error("failed", error, line);
                else command.emit("acknowledged", placed(line, metadata));
            });
        }
        producer.flush();
    }

    private static void transactions(Main.Command command, KafkaProducer<byte[], byte[]> producer) throws Exception {
        int count = command.number("count", 1);
        int each = command.number("perTransaction", count);
        int abortEvery = command.number("abortEvery", 0);
        int start = command.number("start", 0);
        producer.initTransactions();
        int number = 0;
        for (int from = start; from < start + count && !command.stopped; from += each) {
            String name = command.text("transactionalId", "") + "-" + ++number;
            producer.beginTransaction();
            List<ObjectNode> lines = new ArrayList<>();
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = from; i < Math.min(from + each, start + count); i++) {
                ProducerRecord<byte[], byte[]> record = Records.make(command, i);
                ObjectNode line = Records.fields(record).put("transaction", name);
                if (command.flag("sent")) command.emit("sent", line);
                lines.add(line);
                sent.add(producer.send(record));
            }
            producer.flush();
            for (int i = 0; i < sent.size(); i++) {
                command.emit("acknowledged", placed(lines.get(i), sent.get(i).get(60, TimeUnit.SECONDS)));
            }
            boolean abort = abortEvery > 0 && number % abortEvery == 0;
            if (abort) producer.abortTransaction();
            else producer.commitTransaction();
            command.emit("transaction", Main.JSON.createObjectNode().put("producer", command.text("producer", "p"))
                .put("transaction", name).put("outcome", abort ? "aborted" : "committed"));
        }
    }

    private static ObjectNode placed(ObjectNode line, RecordMetadata metadata) {
        line.put("partition", metadata.partition()).put("timestamp", metadata.timestamp());
        return metadata.hasOffset() ? line.put("offset", metadata.offset()) : line;
    }
}
