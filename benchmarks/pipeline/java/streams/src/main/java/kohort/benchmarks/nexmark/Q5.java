package kohort.benchmarks.nexmark;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.time.Duration;
import java.util.SortedSet;
import java.util.TreeSet;
import kohort.benchmarks.Json;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;

/** Hot items: counts by auction and window, and of them the most by window. */
final class Q5 {
    private static final Duration SIZE = Duration.ofSeconds(10);

    private Q5() { }

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Bid(long dateTime) { }

    record Count(long auction, long num) { }

    /** The auctions with the most bids so far. */
    record Most(long num, SortedSet<Long> auctions) {
        /** Counts only grow, so that one of these auctions that gets another bid is the only one. */
        Most with(Count count) {
            if (count.num() < num) {
                return this;
            }
            var all = count.num() > num ? new TreeSet<Long>() : new TreeSet<>(auctions);
            all.add(count.auction());
            return new Most(count.num(), all);
        }
    }

    record Result(String window, long num, SortedSet<Long> auctions) { }

    static void program(Sources nexmark, String results) {
        nexmark.stream("bid", Bid.class, Bid::dateTime)
            .groupByKey(Grouped.with(Serdes.String(), Json.of(Bid.class)))
            .windowedBy(TimeWindows.ofSizeAndGrace(SIZE, Sources.GRACE).advanceBy(Duration.ofSeconds(2)))
            .count(Results.windows("counts", Serdes.Long(), SIZE))
            .toStream()
            .map((group, num) -> KeyValue.pair(
                Results.time(group.window().start()), new Count(Long.parseLong(group.key()), num)))
            .groupByKey(Grouped.with("hot", Serdes.String(), Json.of(Count.class)))
            .aggregate(
                () -> new Most(0, new TreeSet<>()),
                (window, count, most) -> most.with(count),
                Materialized.with(Serdes.String(), Json.of(Most.class)))
            .toStream()
            .mapValues((window, most) -> new Result(window, most.num(), most.auctions()))
            .to(results, Results.of(Result.class));
    }
}
