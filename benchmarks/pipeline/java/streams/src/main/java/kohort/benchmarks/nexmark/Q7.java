package kohort.benchmarks.nexmark;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.time.Duration;
import java.util.Comparator;
import kohort.benchmarks.Json;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;

/** Highest bid: all bids of a window go through one partition. */
final class Q7 {
    private static final Duration SIZE = Duration.ofSeconds(10);
    private static final Comparator<Bid> HIGHEST = Comparator.comparingLong(Bid::price)
        .thenComparingLong(Bid::auction)
        .thenComparingLong(Bid::bidder)
        .thenComparingLong(Bid::dateTime)
        .thenComparing(Bid::extra);

    private Q7() { }

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Bid(long auction, long bidder, long price, long dateTime, String extra) { }

    record Best(long price, long auction, long bidder, String dateTime, String extra) { }

    record Result(String window, Best best) { }

    static void program(Sources nexmark, String results) {
        nexmark.stream("bid", Bid.class, Bid::dateTime)
            .groupBy((key, bid) -> "all", Grouped.with("highest", Serdes.String(), Json.of(Bid.class)))
            .windowedBy(TimeWindows.ofSizeAndGrace(SIZE, Sources.GRACE))
            .reduce(
                (best, bid) -> HIGHEST.compare(bid, best) > 0 ? bid : best,
                Results.windows("highest", Json.of(Bid.class), SIZE))
            .toStream()
            .map(Q7::result)
            .to(results, Results.of(Result.class));
    }

    private static KeyValue<String, Result> result(Windowed<String> group, Bid bid) {
        String window = Results.time(group.window().start());
        var best = new Best(bid.price(), bid.auction(), bid.bidder(), Results.time(bid.dateTime()), bid.extra());
        return KeyValue.pair(window, new Result(window, best));
    }
}
