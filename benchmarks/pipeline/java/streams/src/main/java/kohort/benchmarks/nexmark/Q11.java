package kohort.benchmarks.nexmark;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.time.Duration;
import kohort.benchmarks.Json;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.Windowed;

/** User sessions. One that grows is deleted and written anew, under the same key if it begins when it did. */
final class Q11 {
    private static final Duration GAP = Duration.ofSeconds(10);

    private Q11() { }

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Bid(long bidder, long dateTime) { }

    record Session(long bidder, String window) { }

    record Result(String window, long bidder, String ended, long bid_count) { }

    static void program(Sources nexmark, String results) {
        nexmark.stream("bid", Bid.class, Bid::dateTime)
            .groupBy((key, bid) -> Long.toString(bid.bidder()), Grouped.with("bidders", Serdes.String(), Json.of(Bid.class)))
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(GAP, Sources.GRACE))
            .count(Results.sessions("sessions", Serdes.Long(), GAP))
            .toStream()
            .map(Q11::result)
            .to(results, Produced.with(Json.of(Session.class), Json.of(Result.class)));
    }

    private static KeyValue<Session, Result> result(Windowed<String> group, Long count) {
        var session = new Session(Long.parseLong(group.key()), Results.time(group.window().start()));
        if (count == null) {
            return KeyValue.pair(session, null);
        }
        String ended = Results.time(group.window().end());
        return KeyValue.pair(session, new Result(session.window(), session.bidder(), ended, count));
    }
}
