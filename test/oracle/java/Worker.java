import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Serialisers of one Kafka version. Questions start with a letter:
 *   L                                          the APIs of a broker's listener with versions and header versions, as text
 *   D class version                            a message of defaults: its bytes and JSON
 *   R class version bytes                      reads the bytes, writes them again: bytes and JSON
 *   C class version other-version bytes        reads in one version, writes in another: bytes and JSON
 * An answer is a zero byte and the result, or a one byte and the reason why there is none.
 */
public final class Worker implements Function<byte[], byte[]> {
    private final Map<String, Method> converters = new HashMap<>();

    @Override
    public byte[] apply(byte[] question) {
        try {
            ByteBuffer buffer = ByteBuffer.wrap(question);
            byte kind = buffer.get();
            if (kind == 'L') return text(0, list());
            byte[] name = new byte[buffer.getShort()];
            buffer.get(name);
            short version = buffer.getShort();
            Message message = (Message) Class.forName(new String(name, StandardCharsets.UTF_8)).getDeclaredConstructor().newInstance();
            short writeVersion = kind == 'C' ? buffer.getShort() : version;
            if (kind != 'D') {
                ByteBuffer body = buffer.slice();
                message.read(new ByteBufferAccessor(body), version);
                if (body.hasRemaining()) throw new IllegalStateException(body.remaining() + " bytes left over");
            }
            return result(bytesOf(message, writeVersion), json(message, writeVersion));
        } catch (InvocationTargetException wrapped) {
            return text(1, String.valueOf(wrapped.getCause()));
        } catch (Throwable reason) {
            return text(1, reason.toString());
        }
    }

    private static byte[] bytesOf(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) throw new IllegalStateException(buffer.remaining() + " bytes not written");
        return buffer.array();
    }

    private byte[] json(Message message, short version) throws Exception {
        Class<?> type = message.getClass();
        Method write = converters.get(type.getName());
        if (write == null) {
            Class<?> converter = Class.forName(type.getName() + "JsonConverter");
            write = converter.getMethod("write", type, short.class, boolean.class);
            converters.put(type.getName(), write);
        }
        JsonNode node = (JsonNode) write.invoke(null, message, version, false);
        return node.toString().getBytes(StandardCharsets.UTF_8);
    }

    /** One line per API and version: key, name, lowest, highest, version, request header, response header. */
    private static String list() {
        StringBuilder lines = new StringBuilder();
        for (ApiMessageType api : ApiMessageType.values()) {
            if (!api.listeners().contains(ApiMessageType.ListenerType.BROKER)) continue;
            short last = api.highestSupportedVersion(true);
            for (short version = api.lowestSupportedVersion(); version <= last; version++) {
                lines.append(api.apiKey()).append(' ').append(api.name).append(' ');
                lines.append(version).append(' ');
                lines.append(api.requestHeaderVersion(version)).append(' ');
                lines.append(api.responseHeaderVersion(version)).append('\n');
            }
        }
        return lines.toString();
    }

    private static byte[] text(int status, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        byte[] answer = new byte[bytes.length + 1];
        answer[0] = (byte) status;
        System.arraycopy(bytes, 0, answer, 1, bytes.length);
        return answer;
    }

    private static byte[] result(byte[] bytes, byte[] json) throws Exception {
        ByteArrayOutputStream answer = new ByteArrayOutputStream(bytes.length + json.length + 5);
        DataOutputStream out = new DataOutputStream(answer);
        out.writeByte(0);
        out.writeInt(bytes.length);
        out.write(bytes);
        out.write(json);
        return answer.toByteArray();
    }
}
