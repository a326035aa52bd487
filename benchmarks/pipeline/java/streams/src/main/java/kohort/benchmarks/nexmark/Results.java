package kohort.benchmarks.nexmark;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import kohort.benchmarks.Json;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/** How results are stored and written. */
final class Results {
    private static final DateTimeFormatter TIME =
        DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);

    private Results() { }

    /** A time of ms since 1970, as results have it. */
    static String time(long milliseconds) {
        return TIME.format(Instant.ofEpochMilli(milliseconds));
    }

    /** Records with keys that are text. */
    static <T> Produced<String, T> of(Class<T> type) {
        return Produced.with(Serdes.String(), Json.of(type));
    }

    /** A store of windows, for as long as they take late events. */
    static <T> Materialized<String, T, WindowStore<Bytes, byte[]>> windows(String name, Serde<T> values, Duration size) {
        return Materialized.<String, T, WindowStore<Bytes, byte[]>>as(name)
            .withKeySerde(Serdes.String())
            .withValueSerde(values)
            .withRetention(Sources.GRACE.plus(size));
    }

    /** A store of sessions, for as long as they take late events. */
    static <T> Materialized<String, T, SessionStore<Bytes, byte[]>> sessions(String name, Serde<T> values, Duration gap) {
        return Materialized.<String, T, SessionStore<Bytes, byte[]>>as(name)
            .withKeySerde(Serdes.String())
            .withValueSerde(values)
            .withRetention(Sources.GRACE.plus(gap));
    }
}
