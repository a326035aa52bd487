package kohort.interop;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.internals.AsyncKafkaConsumer;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData.Subtopology;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData.TaskId;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData.TopicInfo;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceListener;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member whose topology is one subtopology, "0", with a source topic and a state store. It reports of its state what it is told to. */
final class StreamsMember implements Runnable, StreamsRebalanceListener {
    private final String name;
    private final String topic;
    private final StreamsRebalanceData data;
    private final AsyncKafkaConsumer<byte[], byte[]> consumer;
    private volatile Map<TaskId, Long> offsets = Map.of();
    private volatile Map<TaskId, Long> endOffsets = Map.of();
    private volatile GroupMembershipOperation closing;

    static StreamsMember start(String name, JsonNode command) {
        var configs = new HashMap<String, Object>();
        command.get("configs").fields().forEachRemaining(field -> configs.put(field.getKey(), field.getValue().asText()));
        var member = new StreamsMember(name, command.get("topic").asText(), UUID.fromString(command.get("process").asText()), configs);
        member.restore(command.get("offsets"));
        new Thread(member).start();
        return member;
    }

    private StreamsMember(String name, String topic, UUID process, Map<String, Object> configs) {
        this.name = name;
        this.topic = topic;
        String changelog = configs.get("group.id") + "-store-changelog";
        var compacted = new TopicInfo(Optional.empty(), Optional.empty(), Map.of("cleanup.policy", "compact"));
        var subtopology = new Subtopology(Set.of(topic), Set.of(), Map.of(), Map.of(changelog, compacted), List.of());
        data = new StreamsRebalanceData(
                process, Optional.empty(), Optional.empty(), Map.of("0", subtopology), Map.of(), () -> offsets, () -> endOffsets);
        var deserializer = new ByteArrayDeserializer();
        var config = new ConsumerConfig(ConsumerConfig.appendDeserializerToConfig(configs, deserializer, deserializer));
        consumer = new AsyncKafkaConsumer<>(config, deserializer, deserializer, Optional.of(data));
    }

    /** Has it report these offsets and end offsets, by task. */
    void restore(JsonNode tasks) {
        var now = new HashMap<TaskId, Long>();
        var ends = new HashMap<TaskId, Long>();
        tasks.fields().forEachRemaining(field -> {
            String[] parts = field.getKey().split("_");
            var task = new TaskId(parts[0], Integer.parseInt(parts[1]));
            now.put(task, field.getValue().get(0).asLong());
            ends.put(task, field.getValue().get(1).asLong());
        });
        endOffsets = ends;
        offsets = now;
    }

    void close(GroupMembershipOperation how) {
        closing = how;
        consumer.wakeup();
    }

    @Override
    public void run() {
        try {
            consumer.subscribe(List.of(topic), this);
            while (closing == null) {
                consumer.poll(Duration.ofMillis(50));
            }
        } catch (Exception e) {
            if (closing == null) {
                var cause = List.of(e.getClass().getSimpleName(), String.valueOf(e.getMessage()));
                Members.tell(name, "error", Map.of("causes", List.of(cause)));
            }
        }
        var how = closing == null ? GroupMembershipOperation.DEFAULT : closing;
        consumer.close(CloseOptions.timeout(Duration.ofSeconds(10)).withGroupMembershipOperation(how));
        Members.tell(name, "closed", Map.of("in time", true));
    }

    @Override
    public void onTasksRevoked(Set<TaskId> tasks) {
        Members.tell(name, "revoked", Map.of("active", texts(tasks)));
    }

    @Override
    public void onTasksAssigned(StreamsRebalanceData.Assignment assignment) {
        data.setReconciledAssignment(assignment);
        tell(assignment);
    }

    @Override
    public void onAllTasksLost() {
        data.setReconciledAssignment(StreamsRebalanceData.Assignment.EMPTY);
        tell(StreamsRebalanceData.Assignment.EMPTY);
    }

    private void tell(StreamsRebalanceData.Assignment assignment) {
        Members.tell(name, "tasks", Map.of(
                "active", texts(assignment.activeTasks()),
                "standby", texts(assignment.standbyTasks()),
                "warmup", texts(assignment.warmupTasks())));
    }

    private static Collection<String> texts(Set<TaskId> tasks) {
        return tasks.stream().map(task -> task.subtopologyId() + "_" + task.partitionId()).collect(Collectors.toCollection(TreeSet::new));
    }
}
