package kohort.benchmarks;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.WindowStore;

/** Bids by auction and day. The argument is JSON, as {@link Application} takes it. */
public final class Auctions {
    private static final DateTimeFormatter TIME =
        DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);
    private static final Duration GRACE = Duration.ofDays(7);

    /** What is read of a bid. */
    @JsonIgnoreProperties(ignoreUnknown = true)
    record Bid(long auction, long price, long dateTime) { }

    /** A group's aggregates so far. */
    record Sums(long bids, long cheap, long middling, long dear, long lowest, long highest, long total) {
        Sums with(long price) {
            return new Sums(
                bids + 1,
                cheap + (price < 10_000 ? 1 : 0),
                middling + (price >= 10_000 && price < 1_000_000 ? 1 : 0),
                dear + (price >= 1_000_000 ? 1 : 0),
                Math.min(lowest, price),
                Math.max(highest, price),
                total + price);
        }
    }

    /** A record of the results. */
    record Result(
        long auction, String window, long bids, long cheap, long middling, long dear, long lowest, long highest,
        double mean, long total) { }

    public static void main(String[] args) throws Exception {
        Application.run(args[0], Auctions::topology);
    }

    private static Topology topology(String source, String results) {
        var builder = new StreamsBuilder();
        var consumed = Consumed.with(Serdes.String(), Json.of(Bid.class))
            .withTimestampExtractor((entry, time) -> ((Bid) entry.value()).dateTime());
        builder.stream(source, consumed)
            .groupByKey(Grouped.with(Serdes.String(), Json.of(Bid.class)))
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofDays(1), GRACE))
            .aggregate(
                () -> new Sums(0, 0, 0, 0, Long.MAX_VALUE, Long.MIN_VALUE, 0),
                (key, bid, sums) -> sums.with(bid.price()),
                Materialized.<String, Sums, WindowStore<Bytes, byte[]>>as("auctions")
                    .withKeySerde(Serdes.String())
                    .withValueSerde(Json.of(Sums.class))
                    .withRetention(GRACE.plusDays(1)))
            .toStream()
            .map(Auctions::result)
            .to(results, Produced.with(Serdes.String(), Json.of(Result.class)));
        return builder.build();
    }

    private static KeyValue<String, Result> result(Windowed<String> group, Sums sums) {
        String window = TIME.format(Instant.ofEpochMilli(group.window().start()));
        double mean = (double) sums.total() / sums.bids();
        return KeyValue.pair(group.key() + "|" + window, new Result(
            Long.parseLong(group.key()), window, sums.bids(), sums.cheap(), sums.middling(), sums.dear(), sums.lowest(),
            sums.highest(), mean, sums.total()));
    }
}
