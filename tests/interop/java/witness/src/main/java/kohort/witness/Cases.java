package kohort.witness;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Merger;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** The programs. What is aggregated are numbers as text; an aggregate's value is {@code number,sum}. */
final class Cases {
    private static final ValueJoiner<String, String, String> BOTH = (left, right) -> left + "|" + right;
    private static final String NOTHING = "0,0";

    private Cases() { }

    static void build(StreamsBuilder builder, String name, JsonNode parameters) {
        switch (name) {
            case "stream_join" -> streamJoin(builder, parameters);
            case "windows" -> windows(builder, parameters);
            case "sessions" -> sessions(builder, parameters);
            case "sliding" -> sliding(builder, parameters);
            case "suppressed" -> suppressed(builder, parameters);
            case "table_aggregate" -> tableAggregate(builder);
            case "table_join" -> tableJoin(builder, parameters);
            case "foreign_key_join" -> foreignKeyJoin(builder, parameters);
            case "stream_table_join" -> streamTableJoin(builder, parameters);
            case "as_of_join" -> asOfJoin(builder, parameters);
            default -> throw new IllegalArgumentException(name);
        }
    }

    private static void streamJoin(StreamsBuilder builder, JsonNode parameters) {
        KStream<String, String> left = builder.stream("left");
        KStream<String, String> right = parameters.get("itself").asBoolean() ? left : builder.stream("right");
        var windows = JoinWindows.ofTimeDifferenceAndGrace(Duration.ZERO, time(parameters, "grace"))
            .before(time(parameters, "before")).after(time(parameters, "after"));
        StreamJoined<String, String, String> with = StreamJoined.as("join");
        KStream<String, String> joined = switch (parameters.get("how").asText()) {
            case "inner" -> left.join(right, BOTH, windows, with);
            case "left" -> left.leftJoin(right, BOTH, windows, with);
            default -> left.outerJoin(right, BOTH, windows, with);
        };
        joined.to("out");
    }

    private static void windows(StreamsBuilder builder, JsonNode parameters) {
        var windows = TimeWindows.ofSizeAndGrace(time(parameters, "size"), time(parameters, "grace"))
            .advanceBy(time(parameters, "advance"));
        emitted(parameters, grouped(builder).windowedBy(windows).aggregate(() -> NOTHING, Cases::added, texts()))
            .toStream().map((key, value) -> KeyValue.pair(start(key), value)).to("out");
    }

    private static void sessions(StreamsBuilder builder, JsonNode parameters) {
        var windows = SessionWindows.ofInactivityGapAndGrace(time(parameters, "gap"), time(parameters, "grace"));
        Merger<String, String> merger = (key, one, other) -> sum(one, other, 1);
        emitted(parameters, grouped(builder).windowedBy(windows)
                .aggregate(() -> NOTHING, Cases::added, merger, Materialized.with(Serdes.String(), Serdes.String())))
            .toStream().map((key, value) -> KeyValue.pair(span(key), value)).to("out");
    }

    private static void sliding(StreamsBuilder builder, JsonNode parameters) {
        var windows =
            SlidingWindows.ofTimeDifferenceAndGrace(time(parameters, "difference"), time(parameters, "grace"));
        emitted(parameters, grouped(builder).windowedBy(windows).aggregate(() -> NOTHING, Cases::added, texts()))
            .toStream().map((key, value) -> KeyValue.pair(start(key), value)).to("out");
    }

    private static void suppressed(StreamsBuilder builder, JsonNode parameters) {
        grouped(builder).aggregate(() -> NOTHING, Cases::added, Materialized.with(Serdes.String(), Serdes.String()))
            .suppress(Suppressed.untilTimeLimit(
                time(parameters, "limit"), Suppressed.BufferConfig.unbounded()))
            .toStream().to("out");
    }

    /** Values are {@code group:number}. */
    private static void tableAggregate(StreamsBuilder builder) {
        builder.<String, String>table("table")
            .groupBy(
                (key, value) -> KeyValue.pair(before(value), after(value)),
                Grouped.with(Serdes.String(), Serdes.String()))
            .aggregate(
                () -> NOTHING,
                (key, value, sums) -> sum(sums, "1," + value, 1),
                (key, value, sums) -> sum(sums, "1," + value, -1),
                Materialized.with(Serdes.String(), Serdes.String()))
            .toStream().to("out");
    }

    private static void tableJoin(StreamsBuilder builder, JsonNode parameters) {
        KTable<String, String> left = builder.table("left");
        KTable<String, String> right = builder.table("right");
        KTable<String, String> joined = switch (parameters.get("how").asText()) {
            case "inner" -> left.join(right, BOTH);
            case "left" -> left.leftJoin(right, BOTH);
            default -> left.outerJoin(right, BOTH);
        };
        joined.toStream().to("out");
    }

    /** Left values are {@code foreign key:text}. */
    private static void foreignKeyJoin(StreamsBuilder builder, JsonNode parameters) {
        KTable<String, String> left = builder.table("left");
        KTable<String, String> right = builder.table("right");
        KTable<String, String> joined = parameters.get("how").asText().equals("inner")
            ? left.join(right, Cases::before, BOTH)
            : left.leftJoin(right, Cases::before, BOTH);
        joined.toStream().to("out");
    }

    private static void streamTableJoin(StreamsBuilder builder, JsonNode parameters) {
        KTable<String, String> table = builder.<String, String>table("right").filter(
            (key, value) -> !value.startsWith("x"));
        KStream<String, String> stream = builder.stream("left");
        (parameters.get("how").asText().equals("inner") ? stream.join(table, BOTH) : stream.leftJoin(table, BOTH))
            .to("out");
    }

    private static void asOfJoin(StreamsBuilder builder, JsonNode parameters) {
        var versions = Stores.persistentVersionedKeyValueStore("versions", time(parameters, "history"));
        KTable<String, String> table = builder.table(
            "right", Consumed.with(Serdes.String(), Serdes.String()), Materialized.<String, String>as(versions));
        KStream<String, String> stream = builder.stream("left");
        Joined<String, String, String> with = Joined.with(Serdes.String(), Serdes.String(), Serdes.String());
        Duration grace = time(parameters, "grace");
        with = grace.isZero() ? with : with.withGracePeriod(grace);
        (parameters.get("how").asText().equals("inner")
            ? stream.join(table, BOTH, with) : stream.leftJoin(table, BOTH, with)).to("out");
    }

    private static KGroupedStream<String, String> grouped(StreamsBuilder builder) {
        return builder.stream("stream", Consumed.with(Serdes.String(), Serdes.String())).groupByKey();
    }

    /** As it changes, or once when its windows are closed. */
    private static KTable<Windowed<String>, String> emitted(
        JsonNode parameters, KTable<Windowed<String>, String> windows) {
        return parameters.get("emit").asText().equals("close")
            ? windows.suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())) : windows;
    }

    private static Materialized<String, String, WindowStore<Bytes, byte[]>> texts() {
        return Materialized.with(Serdes.String(), Serdes.String());
    }

    private static Duration time(JsonNode parameters, String name) {
        return Duration.ofMillis(parameters.get(name).asLong());
    }

    private static String start(Windowed<String> key) {
        return key.key() + "@" + key.window().start();
    }

    private static String span(Windowed<String> key) {
        return start(key) + "/" + key.window().end();
    }

    private static String before(String value) {
        return value.substring(0, value.indexOf(':'));
    }

    private static String after(String value) {
        return value.substring(value.indexOf(':') + 1);
    }

    private static String added(String key, String value, String sums) {
        return sum(sums, "1," + value, 1);
    }

    private static String sum(String sums, String others, int sign) {
        long[] mine = numbers(sums);
        long[] theirs = numbers(others);
        return (mine[0] + sign * theirs[0]) + "," + (mine[1] + sign * theirs[1]);
    }

    private static long[] numbers(String sums) {
        int comma = sums.indexOf(',');
        return new long[] {Long.parseLong(sums.substring(0, comma)), Long.parseLong(sums.substring(comma + 1))};
    }
}
