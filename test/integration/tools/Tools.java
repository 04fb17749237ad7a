import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools, one after another, in one Java machine. A line of input is
 * {"main": class, "args": […], "input": text}; a line of output is {"status": exit code, "output": what it printed}.
 */
public final class Tools {
    private static final class Exited extends RuntimeException {
        Exited() {
            super("the tool has ended", null, false, false);
        }
    }

    /** The status of the first call of exit: some tools catch what it throws here and exit once more. */
    private static Integer exitStatus;

    public static void main(String[] unused) throws Exception {
        ObjectMapper json = new ObjectMapper();
        PrintStream answers = System.out;
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Exit.setExitProcedure((status, message) -> {
            if (exitStatus == null) exitStatus = status;
            throw new Exited();
        });
        List<Runnable> hooks = new ArrayList<>();
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            JsonNode command = json.readTree(line);
            String[] args = new String[command.get("args").size()];
            for (int i = 0; i < args.length; i++) args[i] = command.get("args").get(i).asText();
            ByteArrayOutputStream output = new ByteArrayOutputStream();
            System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
            System.setErr(System.out);
            System.setIn(new ByteArrayInputStream(command.path("input").asText("").getBytes(StandardCharsets.UTF_8)));
            int status = run(command.get("main").asText(), args);
            for (Runnable hook : hooks) hook.run();
            hooks.clear();
            System.out.flush();
            answers.println(json.writeValueAsString(
                json.createObjectNode().put("status", status).put("output", output.toString(StandardCharsets.UTF_8))));
            answers.flush();
        }
        System.exit(0);
    }

    private static int run(String main, String[] args) throws Exception {
        exitStatus = null;
        try {
            Class.forName(main).getMethod("main", String[].class).invoke(null, (Object) args);
            return exitStatus == null ? 0 : exitStatus;
        } catch (InvocationTargetException thrown) {
            if (exitStatus != null) return exitStatus;
            thrown.getCause().printStackTrace(System.out);
            return -1;
        }
    }
}
