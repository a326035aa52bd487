package kohort.interop;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Where a consumer stands and goes. --topic T, of one partition and empty: gets ten records, 100 ms apart. */
final class Positions {
    private static final long FIRST = 1_700_000_000_000L;

    static Object run(Options options) throws Exception {
        var partition = new TopicPartition(options.text("topic"), 0);
        var only = List.of(partition);
        try (var producer = options.producer(Map.of())) {
            for (int i = 0; i < 10; i++) {
                // Each is waited for, so that each is a batch.
                producer.send(new ProducerRecord<>(partition.topic(), 0, FIRST + 100 * i, null, "value-" + i)).get();
            }
        }
        var found = new LinkedHashMap<String, Object>();
        try (var consumer = options.consumer(Map.of("auto.offset.reset", "earliest", "group.id", "positions-" + partition.topic()))) {
            consumer.assign(only);
            found.put("beginning", consumer.beginningOffsets(only).get(partition));
            found.put("end", consumer.endOffsets(only).get(partition));
            found.put("first", first(consumer.poll(Duration.ofSeconds(10))));
            consumer.seek(partition, 7);
            found.put("after seek", first(consumer.poll(Duration.ofSeconds(10))));
            consumer.seek(partition, 1000);
            found.put("reset from beyond the end", first(consumer.poll(Duration.ofSeconds(10))));
            var times = new LinkedHashMap<String, Object>();
            for (long after : new long[] {-50, 0, 250, 900, 901}) {
                var offset = consumer.offsetsForTimes(Map.of(partition, FIRST + after)).get(partition);
                times.put("after " + after, offset == null ? null : List.of(offset.offset(), offset.timestamp() - FIRST));
            }
            found.put("times", times);
            consumer.seek(partition, 4);
            consumer.commitSync();
            found.put("committed", consumer.committed(Set.of(partition)).get(partition).offset());
            found.put("lag", consumer.currentLag(partition).orElse(-1));
        }
        // A reset of the position may be under way twice in a client, so each has a consumer of its own.
        try (var end = options.consumer(Map.of())) {
            end.assign(only);
            end.seekToEnd(only);
            found.put("at end", end.position(partition));
            found.put("nothing there", end.poll(Duration.ofMillis(50)).count());
        }
        try (var beginning = options.consumer(Map.of("auto.offset.reset", "latest"))) {
            beginning.assign(only);
            beginning.seekToBeginning(only);
            found.put("at beginning", beginning.position(partition));
        }
        try (var strict = options.consumer(Map.of("auto.offset.reset", "none", "group.id", "strict-" + partition.topic()))) {
            strict.assign(only);
            found.put("no reset", Interop.errorOf(() -> strict.poll(Duration.ofSeconds(10))));
            strict.seek(partition, 1000);
            found.put("out of range", Interop.errorOf(() -> {
                for (int i = 0; i < 50; i++) {
                    strict.poll(Duration.ofMillis(200));
                }
            }));
        }
        try (var latest = options.consumer(Map.of("auto.offset.reset", "latest", "group.id", "latest-" + partition.topic()))) {
            latest.assign(only);
            found.put("latest", latest.position(partition));
        }
        return found;
    }

    private static String first(Iterable<ConsumerRecord<String, String>> records) {
        var iterator = records.iterator();
        return iterator.hasNext() ? iterator.next().value() : null;
    }
}
