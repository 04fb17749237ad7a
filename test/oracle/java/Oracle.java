import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * Answers questions about Kafka's own serialisers over stdin and stdout. A question is an int32 length, one byte that
 * names the Kafka version (its position in the arguments) and the question itself; an answer is an int32 length and the
 * answer. Each version lives in a class loader of its own.
 *
 * Arguments: the folder of the compiled classes, then one folder of jars per Kafka version.
 */
public final class Oracle {
    public static void main(String[] arguments) throws Exception {
        List<Function<byte[], byte[]>> workers = new ArrayList<>();
        for (int i = 1; i < arguments.length; i++) workers.add(load(new File(arguments[0]), new File(arguments[i])));
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16));
        while (true) {
            byte[] question = next(in);
            if (question == null) return;
            byte[] rest = new byte[question.length - 1];
            System.arraycopy(question, 1, rest, 0, rest.length);
            byte[] answer = workers.get(question[0]).apply(rest);
            out.writeInt(answer.length);
            out.write(answer);
            if (in.available() == 0) out.flush();
        }
    }

    private static byte[] next(DataInputStream in) throws IOException {
        try {
            byte[] question = new byte[in.readInt()];
            in.readFully(question);
            return question;
        } catch (EOFException end) {
            return null;
        }
    }

    @SuppressWarnings("unchecked")
    private static Function<byte[], byte[]> load(File classes, File jars) throws Exception {
        List<URL> urls = new ArrayList<>();
        urls.add(classes.toURI().toURL());
        for (File file : jars.listFiles((folder, name) -> name.endsWith(".jar"))) urls.add(file.toURI().toURL());
        ClassLoader loader = new URLClassLoader(urls.toArray(new URL[0]), ClassLoader.getPlatformClassLoader());
        return (Function<byte[], byte[]>) loader.loadClass("Worker").getDeclaredConstructor().newInstance();
    }
}
