package kohort.interop;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** What an administrator sees of transactions and does to them. --topic T, of one partition and empty. */
final class TransactionsAdmin {
    static Object run(Options options) throws Exception {
        var partition = new TopicPartition(options.text("topic"), 0);
        String id = "admin-" + partition.topic();
        var found = new LinkedHashMap<String, Object>();
        try (var admin = options.admin(); var producer = options.producer(Map.of("transactional.id", id))) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(partition.topic(), 0, null, "open")).get();
            found.put("while open", state(admin, id, partition));
            found.put("listed", listed(admin, id));
            var ongoing = admin.describeProducers(Set.of(partition)).all().get().get(partition).activeProducers().get(0);
            found.put("producer", List.of(ongoing.lastSequence(), ongoing.currentTransactionStartOffset().orElse(-1)));
            producer.commitTransaction();
            found.put("once committed", state(admin, id, partition));

            producer.beginTransaction();
            producer.send(new ProducerRecord<>(partition.topic(), 0, null, "aborted by the administrator")).get();
            var hanging = admin.describeProducers(Set.of(partition)).all().get().get(partition).activeProducers().get(0);
            admin.abortTransaction(new AbortTransactionSpec(partition, hanging.producerId(), (short) hanging.producerEpoch(),
                    hanging.coordinatorEpoch().orElse(0))).all().get();
            found.put("aborted in the partition", admin.describeProducers(Set.of(partition)).all().get().get(partition)
                    .activeProducers().get(0).currentTransactionStartOffset().isEmpty());

            admin.fenceProducers(Set.of(id)).all().get();
            found.put("fenced", Interop.errorOf(() -> {
                producer.send(new ProducerRecord<>(partition.topic(), 0, null, "too late"));
                producer.commitTransaction();
            }));
            found.put("describe unknown", Interop.errorOf(() -> admin.describeTransactions(Set.of("unknown")).all().get()));
        }
        return found;
    }

    private static Object state(Admin admin, String id, TopicPartition partition) throws Exception {
        // A commit is answered before its markers are written.
        long deadline = System.currentTimeMillis() + 10_000;
        while (true) {
            var description = admin.describeTransactions(Set.of(id)).all().get().get(id);
            boolean preparing = description.state().toString().startsWith("Prepare");
            Interop.check(!preparing || System.currentTimeMillis() < deadline, "the transaction never completes");
            if (!preparing) {
                return List.of(description.state().toString(), description.topicPartitions().contains(partition));
            }
        }
    }

    private static Object listed(Admin admin, String id) throws Exception {
        return admin.listTransactions().all().get().stream().filter(listing -> listing.transactionalId().equals(id))
                .map(listing -> listing.state().toString()).toList();
    }
}
