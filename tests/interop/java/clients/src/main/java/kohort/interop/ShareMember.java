package kohort.interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import sun.misc.Signal;

/**
 * A member of a share group in a process of its own, until SIGTERM: tells what it receives, and what became of it once the
 * broker has answered; the same as the programs of other clients. --topic T --group.id G
 */
final class ShareMember {
    private static final Map<String, AcknowledgeType> TYPES = Map.of(
            "accepted", AcknowledgeType.ACCEPT, "released", AcknowledgeType.RELEASE, "rejected", AcknowledgeType.REJECT);
    private static volatile boolean terminated;

    static Object run(Options options) throws Exception {
        Signal.handle(new Signal("TERM"), signal -> terminated = true);
        try (var consumer = options.shareConsumer(Map.of(
                "share.acknowledgement.mode", "explicit", "max.poll.records", 20, "fetch.max.wait.ms", 50,
                "reconnect.backoff.max.ms", 200))) {
            consumer.subscribe(List.of(options.text("topic")));
            while (!terminated) {
                try {
                    step(consumer);
                } catch (KafkaException e) {
                    say("error", Map.of("error", e.toString()));
                }
            }
        }
        say("closed", Map.of());
        return Map.of("event", "done");
    }

    private static void step(KafkaShareConsumer<String, String> consumer) throws Exception {
        var chosen = new ArrayList<ConsumerRecord<String, String>>();
        for (var record : consumer.poll(Duration.ofMillis(100))) {
            say("received", where(record, Map.of("count", count(record))));
            consumer.acknowledge(record, TYPES.get(choice(record.offset(), count(record))));
            chosen.add(record);
        }
        var refused = new HashMap<Integer, String>();
        consumer.commitSync(Duration.ofSeconds(10)).forEach(
                (partition, error) -> error.ifPresent(e -> refused.put(partition.partition(), e.toString())));
        for (var record : chosen) {
            var error = refused.get(record.partition());
            if (error != null) {
                say("refused", where(record, Map.of("error", error)));
            } else {
                say("settled", where(record, Map.of("how", choice(record.offset(), count(record)))));
            }
        }
    }

    private static int count(ConsumerRecord<String, String> record) {
        return record.deliveryCount().orElseThrow();
    }

    private static String choice(long offset, int count) {
        if (offset % 13 == 6) {
            return "released";
        }
        if (offset % 11 == 5) {
            return "rejected";
        }
        return offset % 7 == 3 && count == 1 ? "released" : "accepted";
    }

    private static Map<String, Object> where(ConsumerRecord<String, String> record, Map<String, ?> more) {
        var found = new HashMap<String, Object>(more);
        found.put("partition", record.partition());
        found.put("offset", record.offset());
        return found;
    }

    private static void say(String event, Map<String, ?> facts) throws Exception {
        var found = new HashMap<String, Object>(facts);
        found.put("event", event);
        found.put("at", System.nanoTime());
        Interop.print(found);
    }
}
