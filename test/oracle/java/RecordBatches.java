import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;

/**
 * Reads `records` slices (int32 length, bytes) from stdin with Kafka's own classes, as a consumer does: checksum, then
 * every record. Writes a line per slice: its records, or why it cannot be read.
 */
public final class RecordBatches {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false, StandardCharsets.UTF_8);
        while (true) {
            byte[] slice;
            try {
                slice = new byte[in.readInt()];
            } catch (EOFException end) {
                out.flush();
                return;
            }
            in.readFully(slice);
            try {
                out.println(describe(slice));
            } catch (RuntimeException error) {
                out.println("error " + error);
            }
        }
    }

    private static String describe(byte[] slice) {
        StringBuilder text = new StringBuilder();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(slice)).batches()) {
            batch.ensureValid();
            text.append(batch.magic() < 2 ? "" : "[" + batch.baseOffset() + ".." + batch.lastOffset() + "]");
            for (Record record : batch) {
                text.append(record.offset()).append('@').append(record.timestamp());
                text.append(' ').append(hex(record.key())).append(' ').append(hex(record.value()));
                for (Header header : record.headers()) {
                    text.append(' ').append(HEX.formatHex(header.key().getBytes(StandardCharsets.UTF_8)));
                    text.append('=').append(header.value() == null ? "null" : HEX.formatHex(header.value()));
                }
                text.append(';');
            }
        }
        return text.toString();
    }

    private static String hex(ByteBuffer bytes) {
        if (bytes == null) return "null";
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        return HEX.formatHex(copy);
    }
}
