package kohort.benchmarks;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Comparator;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;
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

/**
 * Queries of Nexmark. The argument is JSON, as {@link Application} takes it, where the source is a prefix of topics; and
 * the query, as case.
 */
public final class Nexmark {
    private static final DateTimeFormatter TIME =
        DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);
    private static final Duration GRACE = Duration.ofDays(1);
    private static final Map<String, BiFunction<String, String, Topology>> QUERIES =
        Map.of("q3", Nexmark::localItems, "q7", Nexmark::highestBids);
    private static final Set<String> STATES = Set.of("or", "id", "ca");
    private static final Comparator<Bid> HIGHEST = Comparator.comparingLong(Bid::price)
        .thenComparingLong(Bid::auction)
        .thenComparingLong(Bid::bidder)
        .thenComparingLong(Bid::dateTime)
        .thenComparing(Bid::extra);

    private Nexmark() { }

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Person(long id, String name, String city, String state) { }

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Auction(long id, long seller, long category) { }

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Bid(long auction, long bidder, long price, long dateTime, String extra) { }

    /** A result of q3. */
    record LocalItem(String name, String city, String state, long id) { }

    /** The best bid of a result of q7. */
    record Best(long price, long auction, long bidder, String dateTime, String extra) { }

    /** A result of q7. */
    record HighestBid(String window, Best best) { }

    public static void main(String[] args) throws Exception {
        String query = Json.MAPPER.readTree(args[0]).get("case").asText();
        Application.run(args[0], QUERIES.get(query));
    }

    /** q3: a join of tables by foreign key. */
    private static Topology localItems(String source, String results) {
        var builder = new StreamsBuilder();
        var persons = builder.table(source + "-person", Consumed.with(Serdes.String(), Json.of(Person.class)))
            .filter((key, person) -> STATES.contains(person.state()));
        builder.table(source + "-auction", Consumed.with(Serdes.String(), Json.of(Auction.class)))
            .filter((key, auction) -> auction.category() == 10)
            .join(
                persons,
                auction -> Long.toString(auction.seller()),
                (auction, person) -> new LocalItem(person.name(), person.city(), person.state(), auction.id()),
                Materialized.with(Serdes.String(), Json.of(LocalItem.class)))
            .toStream()
            .filter((key, item) -> item != null)
            .to(results, Produced.with(Serdes.String(), Json.of(LocalItem.class)));
        return builder.build();
    }

    /** q7: all bids of a window go through one partition. */
    private static Topology highestBids(String source, String results) {
        var builder = new StreamsBuilder();
        var consumed = Consumed.with(Serdes.String(), Json.of(Bid.class))
            .withTimestampExtractor((entry, time) -> ((Bid) entry.value()).dateTime());
        builder.stream(source + "-bid", consumed)
            .groupBy((key, bid) -> "all", Grouped.with("highest", Serdes.String(), Json.of(Bid.class)))
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), GRACE))
            .reduce(
                (best, bid) -> HIGHEST.compare(bid, best) > 0 ? bid : best,
                Materialized.<String, Bid, WindowStore<Bytes, byte[]>>as("highest")
                    .withKeySerde(Serdes.String())
                    .withValueSerde(Json.of(Bid.class))
                    .withRetention(GRACE.plusSeconds(10)))
            .toStream()
            .map(Nexmark::highestBid)
            .to(results, Produced.with(Serdes.String(), Json.of(HighestBid.class)));
        return builder.build();
    }

    private static KeyValue<String, HighestBid> highestBid(Windowed<String> group, Bid bid) {
        String window = time(group.window().start());
        var best = new Best(bid.price(), bid.auction(), bid.bidder(), time(bid.dateTime()), bid.extra());
        return KeyValue.pair(window, new HighestBid(window, best));
    }

    private static String time(long milliseconds) {
        return TIME.format(Instant.ofEpochMilli(milliseconds));
    }
}
