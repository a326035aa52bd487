package kohort.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.stream.StreamSupport;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main classes of Kafka's tools one after the other: a line of JSON asks for one, {"main", "args", "stdin"}, and a line of
 * JSON answers with what it printed and the exit code it asked for, {"code", "out", "err"}.
 */
public final class Tools {
    /** What a tool ended with. */
    public record Finished(int code, String out, String err) { }

    /** Thrown where a tool asks to exit. Some catch it as they catch everything, so only the first time counts. */
    private static final class Exited extends Error {
        Exited() {
            super(null, null, false, false);
        }
    }

    /** What a tool holds on to as its output, sent on to wherever the running one prints. */
    private static final class Redirected extends OutputStream {
        private ByteArrayOutputStream target = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int value) {
            target.write(value);
        }

        @Override
        public synchronized void write(byte[] bytes, int from, int length) {
            target.write(bytes, from, length);
        }

        synchronized String take() {
            var text = target.toString();
            target = new ByteArrayOutputStream();
            return text;
        }
    }

    private static final Redirected OUT = new Redirected();
    private static final Redirected ERR = new Redirected();
    private static Finished finished;

    public static void main(String[] args) throws Exception {
        InputStream requests = System.in;
        PrintStream answers = System.out;
        System.setOut(new PrintStream(OUT, true));
        System.setErr(new PrintStream(ERR, true));
        Exit.setExitProcedure((code, message) -> exit(code, message));
        Exit.setHaltProcedure((code, message) -> exit(code, message));
        Exit.setShutdownHookAdder((name, hook) -> { });
        var json = new ObjectMapper();
        var lines = new BufferedReader(new InputStreamReader(requests));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode request = json.readTree(line);
            System.setIn(new ByteArrayInputStream(request.get("stdin").asText().getBytes()));
            answers.println(json.writeValueAsString(run(request)));
            answers.flush();
        }
    }

    private static Finished run(JsonNode request) {
        String[] args = StreamSupport.stream(request.get("args").spliterator(), false).map(JsonNode::asText).toArray(String[]::new);
        finished = null;
        OUT.take();
        ERR.take();
        try {
            Class.forName(request.get("main").asText()).getMethod("main", String[].class).invoke(null, (Object) args);
            finish(0);
        } catch (InvocationTargetException e) {
            if (finished == null) {
                e.getCause().printStackTrace();
            }
            finish(1);
        } catch (ReflectiveOperationException e) {
            e.printStackTrace();
            finish(1);
        }
        return finished;
    }

    private static void exit(int code, String message) {
        if (message != null) {
            System.err.println(message);
        }
        finish(code);
        throw new Exited();
    }

    private static void finish(int code) {
        if (finished == null) {
            finished = new Finished(code, OUT.take(), ERR.take());
        }
    }
}
