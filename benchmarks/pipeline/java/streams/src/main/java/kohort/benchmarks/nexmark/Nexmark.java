package kohort.benchmarks.nexmark;

import java.util.Map;
import java.util.function.BiConsumer;
import kohort.benchmarks.Application;
import kohort.benchmarks.Json;

/**
 * Queries of Nexmark, a class each. The argument is JSON, as {@link Application} takes it, where the source is a prefix of
 * topics; and the query, as case.
 */
public final class Nexmark {
    private static final Map<String, BiConsumer<Sources, String>> QUERIES = Map.of(
        "q3", Q3::program,
        "q4", Q4::program,
        "q5", Q5::program,
        "q7", Q7::program,
        "q8", Q8::program,
        "q11", Q11::program,
        "q12", Q12::program);

    private Nexmark() { }

    public static void main(String[] args) throws Exception {
        var query = QUERIES.get(Json.MAPPER.readTree(args[0]).get("case").asText());
        Application.run(args[0], (source, results) -> {
            var sources = new Sources(source);
            query.accept(sources, results);
            return sources.topology();
        });
    }
}
