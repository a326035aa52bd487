package kohort.interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;

/** A share consumer with every way to acknowledge. --topic T, empty; --group.id G; --lock MS: of the group. */
final class Share {
    private static final Duration SOON = Duration.ofMillis(300);

    static Object run(Options options) throws Exception {
        String topic = options.text("topic");
        int lockMs = options.number("lock");
        configure(options, Map.of("share.auto.offset.reset", "earliest", "share.record.lock.duration.ms", "" + lockMs));
        var found = new LinkedHashMap<String, Object>();
        produce(options, topic, 0, 40);
        try (var consumer = subscribed(options, topic, Map.of())) {
            found.put("implicit", deliveries(consumer, 40, record -> true));
            found.put("implicit commit", outcome(consumer));
        }
        produce(options, topic, 40, 70);
        try (var consumer = subscribed(options, topic, explicit())) {
            var counts = new TreeMap<String, Integer>();
            await(() -> {
                for (var record : consumer.poll(SOON)) {
                    int number = Integer.parseInt(record.value());
                    int times = counts.merge(record.value(), 1, Integer::sum);
                    Interop.check(record.deliveryCount().orElseThrow() == times, record + " was delivered " + times + " times");
                    consumer.acknowledge(record, number % 3 == 0 && times < 3 ? AcknowledgeType.RELEASE
                            : number % 3 == 1 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT);
                }
                Interop.check(outcome(consumer).equals("none"), "acknowledgements aren't taken");
                return counts.values().stream().mapToInt(Integer::intValue).sum() >= 50;
            });
            found.put("released", counts.entrySet().stream()
                    .allMatch(entry -> entry.getValue() == (Integer.parseInt(entry.getKey()) % 3 == 0 ? 3 : 1)));
            found.put("nothing more", consumer.poll(SOON).count());
        }
        produce(options, topic, 70, 71);
        try (var consumer = subscribed(options, topic, explicit())) {
            // Held for longer than a lock lasts, by renewing it; nobody else gets it.
            var held = deliveries(consumer, 1, record -> {
                for (int i = 0; i < 3; i++) {
                    consumer.acknowledge(record, AcknowledgeType.RENEW);
                    Interop.check(outcome(consumer).equals("none"), "a lock isn't renewed");
                    sleep(lockMs * 2 / 3);
                    consumer.poll(Duration.ofMillis(1));
                }
                consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                return true;
            });
            found.put("renewed", held);
            found.put("renewed commit", outcome(consumer));
        }
        produce(options, topic, 71, 81);
        try (var consumer = subscribed(options, topic, Map.of("max.poll.records", "4", "share.acquire.mode", "record_limit"))) {
            var sizes = new ArrayList<Integer>();
            await(() -> {
                int size = consumer.poll(SOON).count();
                if (size > 0) {
                    sizes.add(size);
                }
                return sizes.stream().mapToInt(Integer::intValue).sum() >= 10;
            });
            found.put("record limit", sizes.stream().allMatch(size -> size <= 4));
        }
        return found;
    }

    private static Map<String, String> explicit() {
        return Map.of("share.acknowledgement.mode", "explicit");
    }

    private static KafkaShareConsumer<String, String> subscribed(Options options, String topic, Map<String, String> configs) {
        var consumer = options.shareConsumer(configs);
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    /** How many different values were delivered, and how often altogether, until there are as many as wanted. */
    private static List<Integer> deliveries(
            KafkaShareConsumer<String, String> consumer, int wanted, Predicate<ConsumerRecord<String, String>> take)
            throws Exception {
        var counts = new TreeMap<String, Integer>();
        await(() -> {
            for (var record : consumer.poll(SOON)) {
                counts.merge(record.value(), 1, Integer::sum);
                take.test(record);
            }
            return counts.size() >= wanted;
        });
        return List.of(counts.size(), counts.values().stream().mapToInt(Integer::intValue).sum());
    }

    /** The first error of a commit; "none" if it succeeds. */
    private static String outcome(KafkaShareConsumer<String, String> consumer) {
        for (var error : consumer.commitSync().values()) {
            if (error.isPresent()) {
                return error.get().getClass().getSimpleName();
            }
        }
        return "none";
    }

    private static void produce(Options options, String topic, int from, int to) throws Exception {
        try (var producer = options.producer(Map.of())) {
            for (int i = from; i < to; i++) {
                producer.send(new ProducerRecord<>(topic, "" + i));
            }
        }
    }

    private static void configure(Options options, Map<String, String> configs) throws Exception {
        try (var admin = options.admin()) {
            var changes = configs.entrySet().stream()
                    .map(each -> new AlterConfigOp(new ConfigEntry(each.getKey(), each.getValue()), AlterConfigOp.OpType.SET))
                    .toList();
            var group = new ConfigResource(ConfigResource.Type.GROUP, options.text("group.id"));
            admin.incrementalAlterConfigs(Map.of(group, changes)).all().get();
        }
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void await(Condition condition) throws Exception {
        long deadline = System.nanoTime() + 20_000_000_000L;
        while (!condition.holds()) {
            Interop.check(System.nanoTime() < deadline, "it takes too long");
        }
    }

    private static void sleep(int milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
