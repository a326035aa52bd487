package kohort.benchmarks.nexmark;

import java.time.Duration;
import java.util.function.ToLongFunction;
import kohort.benchmarks.Json;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.processor.TimestampExtractor;

/** Nexmark's topics as streams. Each query says by a class of its own which columns it decodes. */
final class Sources {
    /** For how long windows and joins take late events: longer than all events take, since topics are read unevenly. */
    static final Duration GRACE = Duration.ofDays(1);

    private final StreamsBuilder builder = new StreamsBuilder();
    private final String prefix;

    Sources(String prefix) {
        this.prefix = prefix;
    }

    /** Events of a topic by its key, at the time that they have. */
    <T> KStream<String, T> stream(String topic, Class<T> type, ToLongFunction<T> time) {
        return stream(topic, type, (entry, before) -> time.applyAsLong(type.cast(entry.value())));
    }

    /** Events of a topic by its key. */
    <T> KStream<String, T> stream(String topic, Class<T> type, TimestampExtractor time) {
        return builder.stream(name(topic), Consumed.with(Serdes.String(), Json.of(type)).withTimestampExtractor(time));
    }

    /** What was made of them. */
    Topology topology() {
        return builder.build();
    }

    private String name(String topic) {
        return prefix + "-" + topic;
    }
}
