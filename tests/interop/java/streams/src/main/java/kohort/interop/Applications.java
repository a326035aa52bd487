package kohort.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/**
 * Kafka Streams applications, several in a process if wanted, each with a name. Lines of JSON on standard input say what to do: {"do":
 * "start", "name", "topology", "topics": {…}, "configs": {…}, "on error"}, {"do": "query", "name", "id", "store", "key", "stale"}, {"do":
 * "lags" | "dropped", "name", "id"}, {"do": "close", "name", "leave"}. Lines of JSON on standard output tell what happens: {"name", "at", "event":
 * "state" | "tasks" | "error" | "closed" | "answer", …}.
 */
public final class Applications {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, Application> APPLICATIONS = new HashMap<>();

    public static void main(String[] args) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode command = JSON.readTree(line);
            String name = command.get("name").asText();
            Application application = APPLICATIONS.get(name);
            switch (command.get("do").asText()) {
                case "start" -> APPLICATIONS.put(name, Application.start(name, command));
                case "query" -> application.answer(command.get("id"), application.query(command));
                case "lags" -> application.answer(command.get("id"), application.lags());
                case "dropped" -> application.answer(command.get("id"), application.dropped());
                case "close" -> application.close(command.get("leave").asBoolean());
                default -> throw new IllegalArgumentException(line);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    /** Prints an event of an application, with the moment, in ns of a monotonic clock, and more that belongs to it. */
    static void tell(String name, String event, Map<String, ?> more) {
        var told = new HashMap<String, Object>(more);
        told.put("name", name);
        told.put("event", event);
        told.put("at", System.nanoTime());
        try {
            String line = JSON.writeValueAsString(told);
            synchronized (JSON) {
                System.out.println(line);
                System.out.flush();
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
