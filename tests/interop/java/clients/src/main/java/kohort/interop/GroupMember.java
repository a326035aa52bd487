package kohort.interop;

import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * A member of a group in a process of its own, until SIGTERM, which commits all it has read: after every poll, and before it
 * gives partitions up. It tells what happens to it as the programs of other clients do.
 * --topic T --group.id G [--group.protocol P --group.instance.id I --partition.assignment.strategy CLASS]
 */
final class GroupMember implements ConsumerRebalanceListener {
    private final KafkaConsumer<String, String> consumer;
    private final Map<TopicPartition, OffsetAndMetadata> pending = new HashMap<>();
    private final TreeSet<Integer> owned = new TreeSet<>();

    static Object run(Options options) throws Exception {
        var terminated = Events.terminated();
        var member = new GroupMember(options);
        try (var consumer = member.consumer) {
            consumer.subscribe(List.of(options.text("topic")), member);
            while (!terminated.get()) {
                member.step();
            }
        }
        Events.say("closed", Map.of());
        return Map.of("at", System.nanoTime(), "event", "ended");
    }

    private GroupMember(Options options) {
        var configs = new HashMap<String, Object>(Map.of(
                "auto.offset.reset", "earliest", "enable.auto.commit", false, "fetch.max.wait.ms", 50, "reconnect.backoff.max.ms", 200));
        if (options.text("group.protocol").equals("classic")) {
            configs.putAll(Map.of("heartbeat.interval.ms", 300, "session.timeout.ms", 6000));
        }
        consumer = options.consumer(configs);
    }

    private void step() throws Exception {
        for (var record : consumer.poll(Duration.ofMillis(50))) {
            Events.say("read", Map.of("partition", record.partition(), "offset", record.offset()));
            pending.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        commit();
    }

    private void commit() {
        if (pending.isEmpty()) {
            return;
        }
        var offsets = new TreeMap<Integer, Long>();
        pending.forEach((partition, offset) -> offsets.put(partition.partition(), offset.offset()));
        try {
            consumer.commitSync(pending, Duration.ofSeconds(10));
        } catch (KafkaException e) {
            Events.say("commit failed", Map.of("error", e.toString()));
            return; // again later, if the partitions are still ours
        }
        Events.say("committed", Map.of("offsets", offsets));
        pending.clear();
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        partitions.forEach(partition -> owned.add(partition.partition()));
        Events.say("owns", Map.of("partitions", owned));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        commit();
        onPartitionsLost(partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        for (var partition : partitions) {
            pending.remove(partition);
            owned.remove(partition.partition());
        }
        Events.say("owns", Map.of("partitions", owned));
    }
}
