package kohort.benchmarks.nexmark;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.time.Duration;
import kohort.benchmarks.Json;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.StreamJoined;

/** Monitor new users: a join of what is up to 10 s apart, and of it what is in the same window. */
final class Q8 {
    private static final Duration SIZE = Duration.ofSeconds(10);

    private Q8() { }

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Person(long id, String name, long dateTime) { }

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Auction(long seller, long dateTime) { }

    record Both(Person person, Auction auction) {
        boolean inOneWindow() {
            return window(person.dateTime()) == window(auction.dateTime());
        }

        Result result() {
            return new Result(person.id(), person.name(), Results.time(window(person.dateTime())));
        }
    }

    record Result(long id, String name, String window) { }

    static void program(Sources nexmark, String results) {
        var opened = nexmark.stream("auction", Auction.class, Auction::dateTime)
            .selectKey((key, auction) -> Long.toString(auction.seller()));
        nexmark.stream("person", Person.class, Person::dateTime)
            .join(
                opened,
                Both::new,
                JoinWindows.ofTimeDifferenceAndGrace(SIZE, Sources.GRACE),
                StreamJoined.with(Serdes.String(), Json.of(Person.class), Json.of(Auction.class)))
            .filter((person, both) -> both.inOneWindow())
            .mapValues(Both::result)
            .to(results, Results.of(Result.class));
    }

    private static long window(long milliseconds) {
        return milliseconds - milliseconds % SIZE.toMillis();
    }
}
