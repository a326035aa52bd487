package kohort.benchmarks.nexmark;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.time.Duration;
import java.util.Set;
import kohort.benchmarks.Json;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.StreamJoined;

/**
 * Local item suggestion: a join of streams, which gives each pair once. A join of tables by foreign key may give a row again,
 * with the same value.
 */
final class Q3 {
    private static final Set<String> STATES = Set.of("or", "id", "ca");
    private static final Duration WITHIN = Duration.ofHours(1);

    private Q3() { }

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Person(long id, String name, String city, String state, long dateTime) { }

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Auction(long id, long seller, long category, long dateTime) { }

    record Result(String name, String city, String state, long id) { }

    static void program(Sources nexmark, String results) {
        var persons = nexmark.stream("person", Person.class, Person::dateTime)
            .filter((key, person) -> STATES.contains(person.state()));
        nexmark.stream("auction", Auction.class, Auction::dateTime)
            .filter((key, auction) -> auction.category() == 10)
            .selectKey((key, auction) -> Long.toString(auction.seller()))
            .join(
                persons,
                (auction, person) -> new Result(person.name(), person.city(), person.state(), auction.id()),
                JoinWindows.ofTimeDifferenceAndGrace(WITHIN, Sources.GRACE),
                StreamJoined.with(Serdes.String(), Json.of(Auction.class), Json.of(Person.class)))
            .to(results, Results.of(Result.class));
    }
}
