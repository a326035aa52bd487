package kohort.interop;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyQueryMetadata;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.state.HostInfo;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/** An instance of a Kafka Streams application that tells of its state, its tasks and its errors as they change. */
final class Application {
    private static final Duration CLOSE_WITHIN = Duration.ofSeconds(20);
    private static final long SAMPLE_EVERY_MS = 20;

    /** The tasks of an instance by role, warm-ups among the standbys; and the active ones of each thread. */
    record Tasks(TreeSet<String> active, TreeSet<String> standby, List<TreeSet<String>> byThread) { }

    private final String name;
    private final KafkaStreams streams;

    static Application start(String name, JsonNode command) {
        Map<String, String> topics = texts(command.get("topics"));
        Topology topology = Topologies.named(command.get("topology").asText(), topics);
        var configs = new Properties();
        configs.put("default.key.serde", Serdes.StringSerde.class.getName());
        configs.put("default.value.serde", Serdes.StringSerde.class.getName());
        configs.putAll(texts(command.get("configs")));
        var application = new Application(name, new KafkaStreams(topology, configs));
        application.run(StreamThreadExceptionResponse.valueOf(command.get("on error").asText()));
        return application;
    }

    private Application(String name, KafkaStreams streams) {
        this.name = name;
        this.streams = streams;
    }

    private void run(StreamThreadExceptionResponse onError) {
        streams.setStateListener((now, before) -> Applications.tell(name, "state", Map.of("state", now.name())));
        streams.setUncaughtExceptionHandler(error -> {
            Applications.tell(name, "error", Map.of("causes", causes(error)));
            return onError;
        });
        streams.start();
        var sampler = new Thread(this::sample);
        sampler.setDaemon(true);
        sampler.start();
    }

    /** Closes it in the background, so that others in this process can be asked meanwhile; by default as the protocol does. */
    void close(boolean leave) {
        var options = CloseOptions.timeout(CLOSE_WITHIN);
        var how = leave ? options.withGroupMembershipOperation(GroupMembershipOperation.LEAVE_GROUP) : options;
        new Thread(() -> Applications.tell(name, "closed", Map.of("in time", streams.close(how)))).start();
    }

    void answer(JsonNode id, Object answer) {
        Applications.tell(name, "answer", Map.of("id", id, "answer", answer));
    }

    /** Who has a key of a store: "active" and "standbys" as host:port ("" if nobody knows), and "value", if it is here. */
    Object query(JsonNode command) {
        String store = command.get("store").asText();
        String key = command.get("key").asText();
        var answer = new HashMap<String, Object>();
        try {
            KeyQueryMetadata found = streams.queryMetadataForKey(store, key, new StringSerializer());
            boolean known = !found.equals(KeyQueryMetadata.NOT_AVAILABLE);
            answer.put("active", known ? address(found.activeHost()) : "");
            answer.put("standbys", known ? found.standbyHosts().stream().map(Application::address).sorted().toList() : List.of());
            StoreQueryParameters<?> wanted = StoreQueryParameters.fromNameAndType(store, QueryableStoreTypes.<String, Long>keyValueStore());
            wanted = command.get("stale").asBoolean() ? wanted.enableStaleStores() : wanted;
            if (known && !found.activeHost().equals(HostInfo.unavailable())) {
                wanted = wanted.withPartition(found.partition());
            }
            answer.put("value", value(wanted, key));
        } catch (InvalidStateStoreException | IllegalStateException e) {
            answer.put("failure", e.toString());
        }
        return answer;
    }

    @SuppressWarnings("unchecked")
    private Object value(StoreQueryParameters<?> wanted, String key) {
        var store = (org.apache.kafka.streams.state.ReadOnlyKeyValueStore<String, Long>) streams.store(wanted);
        return store.get(key);
    }

    /** How many records the stores that are here lack, by store and partition. */
    Object lags() {
        var lags = new TreeMap<String, Map<Integer, Long>>();
        streams.allLocalStorePartitionLags().forEach((store, partitions) -> {
            var behind = new TreeMap<Integer, Long>();
            partitions.forEach((partition, lag) -> behind.put(partition, lag.offsetLag()));
            lags.put(store, behind);
        });
        return lags;
    }

    /** How many records were left out, those of closed windows among them, once for each window. */
    Object dropped() {
        return streams.metrics().values().stream()
                .filter(metric -> metric.metricName().name().equals("dropped-records-total"))
                .mapToLong(metric -> Math.round((double) metric.metricValue()))
                .sum();
    }

    private void sample() {
        Tasks before = null;
        while (streams.state() != KafkaStreams.State.NOT_RUNNING && streams.state() != KafkaStreams.State.ERROR) {
            Tasks now = tasks();
            if (!now.equals(before)) {
                Applications.tell(name, "tasks", Map.of("active", now.active(), "standby", now.standby(), "by thread", now.byThread()));
                before = now;
            }
            try {
                Thread.sleep(SAMPLE_EVERY_MS);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    private Tasks tasks() {
        var tasks = new Tasks(new TreeSet<>(), new TreeSet<>(), new ArrayList<>());
        streams.metadataForLocalThreads().forEach(thread -> {
            var active = new TreeSet<String>();
            thread.activeTasks().forEach(task -> active.add(task.taskId().toString()));
            tasks.active().addAll(active);
            tasks.byThread().add(active);
            thread.standbyTasks().forEach(task -> tasks.standby().add(task.taskId().toString()));
        });
        return tasks;
    }

    /** The chain of causes, as class name and message. */
    private static List<List<String>> causes(Throwable error) {
        var causes = new ArrayList<List<String>>();
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            causes.add(List.of(cause.getClass().getSimpleName(), String.valueOf(cause.getMessage())));
        }
        return causes;
    }

    private static String address(HostInfo host) {
        return host.host() + ":" + host.port();
    }

    private static Map<String, String> texts(JsonNode object) {
        var texts = new HashMap<String, String>();
        object.fields().forEachRemaining(field -> texts.put(field.getKey(), field.getValue().asText()));
        return texts;
    }
}
