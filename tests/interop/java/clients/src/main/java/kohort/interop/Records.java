package kohort.interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;

/** Writes records of every shape, and reads them. */
final class Records {
    /** A record as we compare it: what was written and what is read must be equal. */
    record Seen(int partition, long offset, long timestamp, String key, String value, List<List<String>> headers) { }

    /** --topic T --records N [--pause MS between two]: what was sent, each with the offset that the server gave it. */
    static List<Seen> produce(Options options) throws Exception {
        String topic = options.text("topic");
        var sent = new ArrayList<ProducerRecord<String, String>>();
        var answers = new ArrayList<Future<RecordMetadata>>();
        try (var producer = options.producer(Map.of("linger.ms", 5))) {
            for (int i = 0; i < options.number("records"); i++) {
                var sending = shaped(topic, i);
                sent.add(sending);
                answers.add(producer.send(sending));
                Thread.sleep(options.number("pause", 0));
            }
            producer.flush();
        }
        var seen = new ArrayList<Seen>();
        for (int i = 0; i < sent.size(); i++) {
            var record = sent.get(i);
            var answer = answers.get(i).get();
            seen.add(new Seen(answer.partition(), answer.offset(), record.timestamp(), record.key(), record.value(), texts(record.headers())));
        }
        return seen;
    }

    /** Keys, values and headers that are absent, empty, repeated, long and beyond ASCII; timestamps that go back and forth. */
    private static ProducerRecord<String, String> shaped(String topic, int i) {
        String key = i % 5 == 0 ? null : i % 5 == 1 ? "" : "key-" + i % 7;
        String value = i % 11 == 3 ? null : i % 11 == 4 ? "" : "wörth ".repeat(i % 13 == 0 ? 3000 : 1 + i % 40) + i;
        // Not long ago, for a server forgets producers by the timestamps of what they wrote.
        long timestamp = System.currentTimeMillis() - (i * 7919L) % 1000;
        var record = new ProducerRecord<>(topic, null, timestamp, key, value);
        if (i % 3 == 0) {
            record.headers().add("trace", ("id-" + i).getBytes()).add("trace", new byte[0]).add("näme", null);
        }
        return record;
    }

    /** --topic T --records N: the first N records of the topic, by partition and offset. */
    static List<Seen> consume(Options options) {
        try (var consumer = options.consumer(Map.of("group.protocol", "classic"))) {
            var partitions = new ArrayList<TopicPartition>();
            consumer.partitionsFor(options.text("topic")).forEach(p -> partitions.add(new TopicPartition(p.topic(), p.partition())));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            return read(consumer, options.number("records"));
        }
    }

    /** Poll until so many records are there. */
    static List<Seen> read(KafkaConsumer<String, String> consumer, int number) {
        var seen = new ArrayList<Seen>();
        long deadline = System.currentTimeMillis() + 20_000;
        while (seen.size() < number) {
            Interop.check(System.currentTimeMillis() < deadline, "only " + seen.size() + " of " + number + " records came");
            consumer.poll(Duration.ofMillis(200)).forEach(record -> seen.add(seen(record)));
        }
        return seen;
    }

    static Seen seen(ConsumerRecord<String, String> record) {
        return new Seen(record.partition(), record.offset(), record.timestamp(), record.key(), record.value(), texts(record.headers()));
    }

    private static List<List<String>> texts(Headers headers) {
        var texts = new ArrayList<List<String>>();
        for (Header header : headers) {
            var pair = new ArrayList<String>();
            pair.add(header.key());
            pair.add(header.value() == null ? null : new String(header.value()));
            texts.add(pair);
        }
        return texts;
    }
}
