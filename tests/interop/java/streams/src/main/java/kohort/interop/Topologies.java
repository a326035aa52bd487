package kohort.interop;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;

/** What the applications do. Keys and values are text. */
final class Topologies {
    private static final Duration WINDOW = Duration.ofSeconds(10);
    private static final Duration GRACE = Duration.ofHours(1);
    private static final TimeWindows TEN_MINUTES = TimeWindows.ofSizeAndGrace(Duration.ofMinutes(10), Duration.ofMinutes(5));

    static Topology named(String name, Map<String, String> topics) {
        var builder = new StreamsBuilder();
        switch (name) {
            case "word-count" -> wordCount(builder, topics.get("source"), topics.get("target"));
            case "join" -> join(builder.stream(topics.get("left")), builder.stream(topics.get("right")), topics.get("target"));
            case "rekeyed-join" -> rekeyedJoin(builder, topics.get("left"), topics.get("right"), topics.get("target"));
            case "tumbling" -> windowed(builder, topics.get("source"), topics.get("target"), TEN_MINUTES);
            case "hopping" -> windowed(builder, topics.get("source"), topics.get("target"), TEN_MINUTES.advanceBy(Duration.ofMinutes(4)));
            case "copy" -> builder.stream(topics.get("source")).to(topics.get("target"));
            default -> throw new IllegalArgumentException(name);
        }
        return builder.build();
    }

    /** Counts the words of lines in the store "counts", whose input is the repartition topic "words"; each count goes to the target. */
    private static void wordCount(StreamsBuilder builder, String source, String target) {
        builder.<String, String>stream(source)
                .flatMapValues(line -> List.of(line.split(" ")))
                .groupBy((key, word) -> word, Grouped.as("words"))
                .count(Materialized.as("counts"))
                .toStream()
                .peek((word, count) -> refuse(word))
                .mapValues(count -> Long.toString(count))
                .to(target);
    }

    /** Counts the records of each key in windows; each count goes to the target, with the key and the window's start as "key@start". */
    private static void windowed(StreamsBuilder builder, String source, String target, TimeWindows windows) {
        builder.<String, String>stream(source)
                .groupByKey()
                .windowedBy(windows)
                .count(Materialized.as("counts"))
                .toStream((windowed, count) -> windowed.key() + "@" + windowed.window().start())
                .mapValues(count -> Long.toString(count))
                .to(target);
    }

    private static void refuse(String word) {
        if (word.equals("poison")) {
            throw new IllegalArgumentException("poison");
        }
    }

    /** Joins records of one key that are at most ten seconds apart, as "left+right". */
    private static void join(KStream<String, String> left, KStream<String, String> right, String target) {
        left.join(
                right,
                (one, other) -> one + "+" + other,
                JoinWindows.ofTimeDifferenceAndGrace(WINDOW, GRACE),
                StreamJoined.<String, String, String>with(Serdes.String(), Serdes.String(), Serdes.String())
                        .withName("join").withStoreName("window")).to(target);
    }

    /** The same, where the key of the left side is what its value begins with, up to a colon: a repartition topic is between. */
    private static void rekeyedJoin(StreamsBuilder builder, String left, String right, String target) {
        KStream<String, String> rekeyed = builder.<String, String>stream(left).map((key, value) -> {
            String[] parts = value.split(":", 2);
            return KeyValue.pair(parts[0], parts[1]);
        });
        join(rekeyed, builder.stream(right), target);
    }
}
