import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;

/** Client program for kafka-clients 4.3.1 and 2.8.2 (one source): commands in, events out. See ../README.md. */
public final class Main {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT =
        new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false, StandardCharsets.UTF_8);
    private static final Map<String, Command> RUNNING = new ConcurrentHashMap<>();

    /** One command that runs in a thread of its own. */
    static final class Command {
        final JsonNode fields;
        final String id;
        final AtomicInteger count = new AtomicInteger();
        volatile boolean stopped;
        volatile Runnable onStop = () -> { };

        Command(JsonNode fields) {
            this.fields = fields;
            this.id = fields.path("id").asText();
        }

        String text(String name, String otherwise) {
            return fields.hasNonNull(name) ? fields.get(name).asText() : otherwise;
        }

        int number(String name, int otherwise) {
            return fields.path(name).asInt(otherwise);
        }

        boolean flag(String name) {
            return fields.path(name).asBoolean(false);
        }

        void emit(String event, ObjectNode more) {
            if (event.equals("acknowledged") || event.equals("delivered")) count.incrementAndGet();
            ObjectNode line = JSON.createObjectNode().put("id", id).put("event", event);
            line.setAll(more);
            line.put("at", System.currentTimeMillis());
            try {
                String text = JSON.writeValueAsString(line);
                synchronized (OUT) {
                    OUT.println(text);
                }
            } catch (JsonProcessingException impossible) {
                throw new IllegalStateException(impossible);
            }
        }

        void error(String event, Throwable error, ObjectNode more) {
            Throwable cause = error instanceof ExecutionException && error.getCause() != null ? error.getCause() : error;
            ObjectNode line = more.deepCopy();
            Errors known = cause instanceof ApiException ? Errors.forException(cause) : Errors.UNKNOWN_SERVER_ERROR;
            if (known == Errors.UNKNOWN_SERVER_ERROR) line.put("code", cause.getClass().getSimpleName());
            else line.put("code", known.code());
            emit(event, line.put("message", String.valueOf(cause.getMessage())));
        }
    }

    private static void execute(Command command) {
        boolean ok = true;
        try {
            switch (command.text("cmd", "")) {
                case "produce" -> Produce.run(command);
                case "consume" -> Consume.run(command);
                case "admin" -> AdminCalls.run(command);
                default -> throw new IllegalArgumentException("unknown cmd");
            }
        } catch (Throwable error) {
            ok = false;
            command.error("error", error, JSON.createObjectNode());
        }
        RUNNING.remove(command.id);
        command.emit("end", JSON.createObjectNode().put("ok", ok).put("count", command.count.get()));
        OUT.flush();
    }

    private static void accept(String line) throws JsonProcessingException {
        JsonNode fields = JSON.readTree(line);
        if (fields.path("cmd").asText().equals("stop")) {
            Command target = RUNNING.get(fields.path("target").asText());
            if (target == null) return;
            target.stopped = true;
            target.onStop.run();
            return;
        }
        Command command = new Command(fields);
        RUNNING.put(command.id, command);
        new Thread(() -> execute(command), command.id).start();
    }

    /** What was emitted has left when this returns: called before what others can see, as the program may be killed behind it. */
    static void flush() {
        synchronized (OUT) {
            OUT.flush();
        }
    }

    /** Events leave in groups, but never later than this. */
    private static void flushOften() {
        while (true) {
            try {
                Thread.sleep(20);
            } catch (InterruptedException ended) {
                return;
            }
            flush();
        }
    }

    public static void main(String[] arguments) throws Exception {
        Thread flusher = new Thread(Main::flushOften, "flush");
        flusher.setDaemon(true);
        flusher.start();
        for (String line : arguments) accept(line);
        if (arguments.length > 0) return;
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            if (!line.isBlank()) accept(line);
        }
    }
}
