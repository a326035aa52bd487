package kohort.interop;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import sun.misc.Signal;

/** How a member in a process of its own tells its parent what happens to it: a line of JSON an event, with the time. */
final class Events {
    static void say(String event, Map<String, ?> facts) {
        var found = new HashMap<String, Object>(facts);
        found.put("event", event);
        found.put("at", System.nanoTime());
        try {
            Interop.print(found);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** True once SIGTERM has come. */
    static AtomicBoolean terminated() {
        var terminated = new AtomicBoolean();
        Signal.handle(new Signal("TERM"), signal -> terminated.set(true));
        return terminated;
    }
}
