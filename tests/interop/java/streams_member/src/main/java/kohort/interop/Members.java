package kohort.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation;

/**
 * Members of streams groups that restore as fast as they are told to. Lines of JSON on standard input say what to do: {"do": "start",
 * "name", "topic", "process", "configs": {…}, "offsets"}, {"do": "offsets", "name", "offsets": {"0_1": [offset, end offset], …}}, {"do":
 * "close", "name", "how"}. Lines of JSON on standard output tell what happens: {"name", "at", "event": "tasks" | "revoked" | "error" |
 * "closed", …}.
 */
public final class Members {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, StreamsMember> MEMBERS = new HashMap<>();

    public static void main(String[] args) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode command = JSON.readTree(line);
            String name = command.get("name").asText();
            switch (command.get("do").asText()) {
                case "start" -> MEMBERS.put(name, StreamsMember.start(name, command));
                case "offsets" -> MEMBERS.get(name).restore(command.get("offsets"));
                case "close" -> MEMBERS.get(name).close(GroupMembershipOperation.valueOf(command.get("how").asText()));
                default -> throw new IllegalArgumentException(line);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    /** Prints an event of a member, with more that belongs to it. */
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
