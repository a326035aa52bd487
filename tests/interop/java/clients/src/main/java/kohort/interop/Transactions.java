package kohort.interop;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Transactions committed, aborted, left open, fenced, with offsets in them. --topic T, of two partitions and empty. */
final class Transactions {
    static Object run(Options options) throws Exception {
        String topic = options.text("topic");
        String id = "transactions-" + topic;
        var partitions = List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
        var found = new LinkedHashMap<String, Object>();
        try (var producer = options.producer(Map.of("transactional.id", id));
                var committed = options.consumer(Map.of("isolation.level", "read_committed"));
                var everything = options.consumer(Map.of("isolation.level", "read_uncommitted"))) {
            committed.assign(partitions);
            committed.seekToBeginning(partitions);
            everything.assign(partitions);
            everything.seekToBeginning(partitions);

            producer.initTransactions();
            send(producer, topic, "committed", 4);
            producer.commitTransaction();
            send(producer, topic, "aborted", 4);
            producer.flush();
            producer.abortTransaction();
            send(producer, topic, "open", 2);
            producer.flush();
            found.put("uncommitted end offsets", everything.endOffsets(partitions).values().stream().mapToLong(n -> n).sum());
            found.put("committed end offsets", committed.endOffsets(partitions).values().stream().mapToLong(n -> n).sum());
            found.put("read uncommitted", values(Records.read(everything, 10)));
            found.put("read committed", values(Records.read(committed, 4)));
            found.put("then", committed.poll(Duration.ofMillis(300)).count());

            // The same id again: what the first left open is aborted, and the first is fenced.
            try (var second = options.producer(Map.of("transactional.id", id))) {
                second.initTransactions();
                found.put("fenced", Interop.errorOf(producer::commitTransaction));
                var group = new ConsumerGroupMetadata("group-" + topic);
                send(second, topic, "second", 2);
                second.sendOffsetsToTransaction(Map.of(partitions.get(0), new OffsetAndMetadata(5, "aborted")), group);
                second.abortTransaction();
                found.put("offset aborted", committedOffset(options, group, partitions.get(0)));
                send(second, topic, "third", 2);
                second.sendOffsetsToTransaction(Map.of(partitions.get(0), new OffsetAndMetadata(3, "noted")), group);
                second.commitTransaction();
                found.put("offset committed", committedOffset(options, group, partitions.get(0)));
            }
            found.put("read committed at last", values(Records.read(committed, 2)));
        }
        return found;
    }

    private static void send(KafkaProducer<String, String> producer, String topic, String what, int number) {
        producer.beginTransaction();
        for (int i = 0; i < number; i++) {
            producer.send(new ProducerRecord<>(topic, i % 2, null, what + "-" + i));
        }
    }

    private static List<String> values(List<Records.Seen> records) {
        return records.stream().map(Records.Seen::value).sorted().toList();
    }

    private static Object committedOffset(Options options, ConsumerGroupMetadata group, TopicPartition partition) {
        try (var consumer = options.consumer(Map.of("group.id", group.groupId()))) {
            var offset = consumer.committed(Set.of(partition)).get(partition);
            return offset == null ? null : List.of(offset.offset(), offset.metadata());
        }
    }
}
