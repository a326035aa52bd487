package kohort.benchmarks.nexmark;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.annotation.JsonProperty;
import java.time.Duration;
import kohort.benchmarks.Json;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.StreamJoined;

/** Average price for a category: a table of winners, of which an old one is subtracted when there is a new one. */
final class Q4 {
    private static final Duration LONGEST = Duration.ofMinutes(10);

    private Q4() { }

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Auction(long category, long dateTime, long expires) { }

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Bid(long price, long dateTime) { }

    record Offer(long category, long price, boolean inTime) { }

    /** A category's winners so far. */
    record Sums(long n, long total) { }

    record Result(long id, @JsonProperty("final") double mean) { }

    static void program(Sources nexmark, String results) {
        var bids = nexmark.stream("bid", Bid.class, Bid::dateTime);
        nexmark.stream("auction", Auction.class, Auction::dateTime)
            .join(
                bids,
                (auction, bid) -> new Offer(auction.category(), bid.price(), bid.dateTime() <= auction.expires()),
                JoinWindows.ofTimeDifferenceAndGrace(Duration.ZERO, Sources.GRACE).after(LONGEST),
                StreamJoined.with(Serdes.String(), Json.of(Auction.class), Json.of(Bid.class)))
            .filter((auction, offer) -> offer.inTime())
            .groupByKey(Grouped.with(Serdes.String(), Json.of(Offer.class)))
            .reduce((best, offer) -> offer.price() > best.price() ? offer : best)
            .groupBy(
                (auction, offer) -> KeyValue.pair(Long.toString(offer.category()), offer.price()),
                Grouped.with("winners", Serdes.String(), Serdes.Long()))
            .aggregate(
                () -> new Sums(0, 0),
                (category, price, sums) -> new Sums(sums.n() + 1, sums.total() + price),
                (category, price, sums) -> new Sums(sums.n() - 1, sums.total() - price),
                Materialized.with(Serdes.String(), Json.of(Sums.class)))
            .toStream()
            .map((category, sums) -> KeyValue.pair(
                category, new Result(Long.parseLong(category), (double) sums.total() / sums.n())))
            .to(results, Results.of(Result.class));
    }
}
