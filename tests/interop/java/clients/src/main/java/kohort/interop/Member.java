package kohort.interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;

/** A member of a group that commits all it has read: after every poll and before it gives partitions up. */
final class Member implements Runnable, ConsumerRebalanceListener {
    /** What a member owns in a generation. */
    record Share(int generation, List<Integer> partitions) { }

    /** The records read, as "partition/offset". */
    final ConcurrentLinkedQueue<String> read = new ConcurrentLinkedQueue<>();
    final ConcurrentLinkedQueue<Integer> revoked = new ConcurrentLinkedQueue<>();
    volatile Share share = new Share(-1, List.of());
    volatile Exception failure;
    private volatile boolean running = true;
    private final KafkaConsumer<String, String> consumer;
    private final Thread thread = new Thread(this);

    /** --topic T --group.id G: a member in a process of its own, which prints what it owns and reads until it is killed. */
    static Object run(Options options) throws Exception {
        var member = new Member(options, options.text("topic"), Map.of());
        Share before = null;
        while (true) {
            member.poll();
            if (!member.share.equals(before)) {
                before = member.share;
                Interop.print(Map.of("owns", before.partitions()));
            }
            if (!member.read.isEmpty()) {
                Interop.print(Map.of("read", List.copyOf(member.read)));
                member.read.clear();
            }
            member.commit();
        }
    }

    Member(Options options, String topic, Map<String, ?> configs) {
        var all = new HashMap<String, Object>(Map.of(
                "group.protocol", "classic", "auto.offset.reset", "earliest", "enable.auto.commit", false,
                "metadata.max.age.ms", 2000));
        all.putAll(configs);
        if (all.get("group.protocol").equals("classic")) {
            all.putAll(Map.of("heartbeat.interval.ms", 100, "session.timeout.ms", 6000));
        }
        consumer = options.consumer(all);
        consumer.subscribe(List.of(topic), this);
    }

    void start() {
        thread.start();
    }

    /** Closes the consumer: a dynamic member leaves its group, a static one doesn't. */
    void close() throws InterruptedException {
        running = false;
        thread.join();
    }

    @Override
    public void run() {
        try (consumer) {
            while (running) {
                poll();
                commit();
            }
        } catch (Exception e) {
            failure = e;
        }
    }

    private void poll() {
        consumer.poll(Duration.ofMillis(50)).forEach(record -> read.add(record.partition() + "/" + record.offset()));
        share = new Share(consumer.groupMetadata().generationId(), numbers(consumer.assignment()));
    }

    private void commit() {
        try {
            consumer.commitSync();
        } catch (RebalanceInProgressException e) {
            // The next poll completes the rebalance, and the commit after it has these offsets too.
        }
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        revoked.addAll(numbers(partitions));
        consumer.commitSync();
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) { }

    private static List<Integer> numbers(Collection<TopicPartition> partitions) {
        var numbers = new TreeSet<Integer>();
        partitions.forEach(partition -> numbers.add(partition.partition()));
        return new ArrayList<>(numbers);
    }
}
