package kohort.benchmarks.nexmark;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.util.Set;
import kohort.benchmarks.Json;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.Materialized;

/** Local item suggestion: a join of tables by foreign key. */
final class Q3 {
    private static final Set<String> STATES = Set.of("or", "id", "ca");

    private Q3() { }

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Person(long id, String name, String city, String state) { }

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Auction(long id, long seller, long category) { }

    record Result(String name, String city, String state, long id) { }

    static void program(Sources nexmark, String results) {
        var persons = nexmark.table("person", Person.class).filter((key, person) -> STATES.contains(person.state()));
        nexmark.table("auction", Auction.class)
            .filter((key, auction) -> auction.category() == 10)
            .join(
                persons,
                auction -> Long.toString(auction.seller()),
                (auction, person) -> new Result(person.name(), person.city(), person.state(), auction.id()),
                Materialized.with(Serdes.String(), Json.of(Result.class)))
            .toStream()
            .filter((key, result) -> result != null)
            .to(results, Results.of(Result.class));
    }
}
