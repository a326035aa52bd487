package kohort.benchmarks;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of a share group, each a KafkaShareConsumer with a thread: the seconds from the first record until all are
 * there, and the last of them accepted. Arguments: bootstrap servers, group, implicit or explicit, members; topic and number
 * of records to warm up with; topic and number of records.
 */
public final class Shares {
    private static final Duration POLL = Duration.ofMillis(100);

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], group = arguments[1], mode = arguments[2];
        int members = Integer.parseInt(arguments[3]);
        new Shares(bootstrap, group + "-warm-up", mode, arguments[4], Long.parseLong(arguments[5])).seconds(members);
        var seconds = new Shares(bootstrap, group, mode, arguments[6], Long.parseLong(arguments[7])).seconds(members);
        System.out.println("{\"seconds\": " + seconds + "}");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private final String bootstrap, group, mode, topic;
    private final long records;
    private final AtomicLong accepted = new AtomicLong();
    private final AtomicLong first = new AtomicLong();
    private volatile long last;

    private Shares(String bootstrap, String group, String mode, String topic, long records) {
        this.bootstrap = bootstrap;
        this.group = group;
        this.mode = mode;
        this.topic = topic;
        this.records = records;
    }

    private double seconds(int members) throws Exception {
        var threads = new ArrayList<Thread>();
        for (int i = 0; i < members; i++) {
            threads.add(new Thread(this::member));
        }
        threads.forEach(Thread::start);
        for (var thread : threads) {
            thread.join();
        }
        if (accepted.get() < records) {
            throw new IllegalStateException("a member ended before all records were accepted");
        }
        return (last - first.get()) / 1e9;
    }

    private void member() {
        boolean explicit = mode.equals("explicit");
        try (var consumer = new KafkaShareConsumer<>(
                Map.of("bootstrap.servers", bootstrap, "group.id", group, "share.acknowledgement.mode", mode),
                new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (accepted.get() < records) {
                var polled = consumer.poll(POLL);
                if (polled.isEmpty()) {
                    continue;
                }
                first.compareAndSet(0, System.nanoTime());
                if (explicit) {
                    polled.forEach(consumer::acknowledge);
                }
                if (accepted.addAndGet(polled.count()) >= records) {
                    consumer.commitSync();
                    last = System.nanoTime();
                }
            }
        }
    }
}
