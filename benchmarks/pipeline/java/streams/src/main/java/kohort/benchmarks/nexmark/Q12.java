package kohort.benchmarks.nexmark;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.time.Duration;
import kohort.benchmarks.Json;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.WallclockTimestampExtractor;

/** Processing-time windows: a bid is in that in which it was read from its topic. */
final class Q12 {
    private static final Duration SIZE = Duration.ofSeconds(10);

    private Q12() { }

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Bid(long bidder) { }

    record Result(String window, long bidder, long bid_count) { }

    static void program(Sources nexmark, String results) {
        nexmark.stream("bid", Bid.class, new WallclockTimestampExtractor())
            .groupBy((key, bid) -> Long.toString(bid.bidder()), Grouped.with("bidders", Serdes.String(), Json.of(Bid.class)))
            .windowedBy(TimeWindows.ofSizeAndGrace(SIZE, Sources.GRACE))
            .count(Results.windows("windows", Serdes.Long(), SIZE))
            .toStream()
            .map(Q12::result)
            .to(results, Results.of(Result.class));
    }

    private static KeyValue<String, Result> result(Windowed<String> group, long count) {
        String window = Results.time(group.window().start());
        return KeyValue.pair(group.key() + "|" + window, new Result(window, Long.parseLong(group.key()), count));
    }
}
