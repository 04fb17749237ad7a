import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;

/** The records to send, and what identifies a record in events. */
final class Records {
    private static final int FILLER_STEP = 131;
    private static final int FILLER_SPAN = 4096;
    private static byte[] filler = new byte[0];

    private Records() { }

    private static synchronized byte[] fill(int length) {
        if (filler.length < length) {
            filler = new byte[length];
            int x = 1;
            for (int i = 0; i < length; i++) {
                x = x * 1664525 + 1013904223;
                filler[i] = (byte) (97 + (x >>> 28));
            }
        }
        return filler;
    }

    static ProducerRecord<byte[], byte[]> make(Main.Command command, int i) {
        int keys = command.number("keys", 10);
        int size = command.number("size", 100);
        String key = keys == 0 ? null : "k" + i % keys + "\u00e9";
        String start = command.text("producer", "p") + "|" + (key == null ? "" : key) + "|" + i + "|";
        byte[] prefix = start.getBytes(StandardCharsets.UTF_8);
        byte[] value = Arrays.copyOf(prefix, Math.max(size, prefix.length));
        byte[] bytes = fill(size + FILLER_SPAN);
        System.arraycopy(bytes, (int) ((long) i * FILLER_STEP % FILLER_SPAN), value, prefix.length, value.length - prefix.length);
        Headers headers = new RecordHeaders();
        int count = command.number("headers", 0);
        for (int j = 0; j < count; j++) {
            String content = j == count - 1 && j > 0 ? "" : "v" + i + "-" + j;
            headers.add("h" + j, content.getBytes(StandardCharsets.UTF_8));
        }
        Integer partition = command.fields.has("partitions") ? i % command.number("partitions", 1) : null;
        Long timestamp = command.fields.has("timestamp") ? command.fields.get("timestamp").asLong() + i : null;
        byte[] keyBytes = key == null ? null : key.getBytes(StandardCharsets.UTF_8);
        return new ProducerRecord<>(command.text("topic", ""), partition, timestamp, keyBytes, value, headers);
    }

    static ObjectNode fields(ProducerRecord<byte[], byte[]> record) {
        return fields(record.topic(), record.key(), record.value(), record.headers());
    }

    static ObjectNode fields(ConsumerRecord<byte[], byte[]> record) {
        return fields(record.topic(), record.key(), record.value(), record.headers())
            .put("partition", record.partition()).put("offset", record.offset()).put("timestamp", record.timestamp());
    }

    private static ObjectNode fields(String topic, byte[] key, byte[] value, Headers headers) {
        ObjectNode line = Main.JSON.createObjectNode().put("topic", topic);
        line.put("key", key == null ? null : new String(key, StandardCharsets.UTF_8));
        if (value != null) {
            String start = new String(value, 0, Math.min(200, value.length), StandardCharsets.UTF_8);
            String[] parts = start.split("\\|", 4);
            if (parts.length == 4) line.put("producer", parts[0]).put("sequence", Integer.parseInt(parts[2]));
        }
        return line.put("valueHash", value == null ? null : hash(value)).put("headersHash", hash(headers));
    }

    private static String hash(Headers headers) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (Header header : headers) {
            all.writeBytes(header.key().getBytes(StandardCharsets.UTF_8));
            all.write(0);
            all.writeBytes(header.value());
            all.write(0);
        }
        return all.size() == 0 ? "" : hash(all.toByteArray());
    }

    private static String hash(byte[] data) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-1").digest(data);
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < 8; i++) text.append(String.format("%02x", digest[i]));
            return text.toString();
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
