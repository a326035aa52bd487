package kohort.benchmarks;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of a consumer group, each a KafkaConsumer with a thread: the seconds from when the late ones begin to join until
 * the group is stable. Arguments: bootstrap servers, group, topic, its partitions, members, how many of them
 * are late, and the seconds that the others rest before.
 */
public final class Joins {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long PATIENCE_NS = 120_000_000_000L;

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], group = arguments[1], topic = arguments[2];
        int partitions = Integer.parseInt(arguments[3]), members = Integer.parseInt(arguments[4]), late = Integer.parseInt(arguments[5]);
        long rest = (long) (1000 * Double.parseDouble(arguments[6]));
        seconds(bootstrap, group + "-warm-up", topic, partitions, 2, 2, 0);
        System.out.println("{\"seconds\": " + seconds(bootstrap, group, topic, partitions, members, late, rest) + "}");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static double seconds(String bootstrap, String group, String topic, int partitions, int members, int late, long rest) throws Exception {
        var all = new ArrayList<Member>();
        for (int i = 0; i < members; i++) {
            all.add(new Member(bootstrap, group, topic));
        }
        if (late < members) {
            all.subList(0, members - late).forEach(Thread::start);
            await(all.subList(0, members - late), partitions);
            Thread.sleep(rest);
        }
        long started = System.nanoTime();
        all.subList(members - late, members).forEach(Thread::start);
        await(all, partitions);
        double taken = (System.nanoTime() - started) / 1e9;
        all.forEach(member -> member.ends = true);
        for (var member : all) {
            member.join();
        }
        return taken;
    }

    /** Until each partition has one owner, and none has two partitions more than another. */
    private static void await(List<Member> members, int partitions) throws Exception {
        long deadline = System.nanoTime() + PATIENCE_NS;
        while (!stable(members, partitions)) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("the group isn't stable");
            }
            Thread.sleep(1);
        }
    }

    private static boolean stable(List<Member> members, int partitions) {
        var owned = new HashSet<TopicPartition>();
        int sum = 0, most = 0, least = Integer.MAX_VALUE;
        for (var member : members) {
            var own = member.owned;
            owned.addAll(own);
            sum += own.size();
            most = Math.max(most, own.size());
            least = Math.min(least, own.size());
        }
        return sum == partitions && owned.size() == partitions && most - least <= 1;
    }

    private static final class Member extends Thread implements ConsumerRebalanceListener {
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final String topic;
        private volatile Set<TopicPartition> owned = Set.of();
        private volatile boolean ends;

        Member(String bootstrap, String group, String topic) {
            this.topic = topic;
            consumer = new KafkaConsumer<>(
                    Map.of("bootstrap.servers", bootstrap, "group.id", group, "group.protocol", "consumer", "enable.auto.commit", "false"),
                    new ByteArrayDeserializer(), new ByteArrayDeserializer());
        }

        @Override
        public void run() {
            try (consumer) {
                consumer.subscribe(List.of(topic), this);
                while (!ends) {
                    consumer.poll(POLL);
                }
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            var now = new HashSet<>(owned);
            now.addAll(partitions);
            owned = now;
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            var now = new HashSet<>(owned);
            now.removeAll(partitions);
            owned = now;
        }
    }
}
