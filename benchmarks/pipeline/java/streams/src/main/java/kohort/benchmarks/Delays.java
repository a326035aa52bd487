package kohort.benchmarks;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/** Delays of flights by origin and hour. The argument is JSON: servers, application, source, results, directory, standbys. */
public final class Delays {
    /** What is read of a flight. */
    @JsonIgnoreProperties(ignoreUnknown = true)
    record Flight(String origin, Long dep_delay, String time_hour) { }

    /** A group's aggregates so far. */
    record Sums(long n, long total, long worst) {
        Sums with(long delay) {
            return new Sums(n + 1, total + delay, n == 0 ? delay : Math.max(worst, delay));
        }
    }

    /** A record of the results. */
    record Result(String origin, String window, long n, double mean, long worst) { }

    public static void main(String[] args) throws Exception {
        Application.run(args[0], Delays::topology);
    }

    private static Topology topology(String source, String results) {
        var builder = new StreamsBuilder();
        builder.stream(source, Consumed.with(Serdes.ByteArray(), Json.of(Flight.class)))
            .filter((key, flight) -> flight.dep_delay() != null)
            .map((key, flight) -> KeyValue.pair(flight.origin() + "|" + flight.time_hour(), flight.dep_delay()))
            .groupByKey(Grouped.with("delays", Serdes.String(), Serdes.Long()))
            .aggregate(
                () -> new Sums(0, 0, 0),
                (key, delay, sums) -> sums.with(delay),
                Materialized.with(Serdes.String(), Json.of(Sums.class)))
            .toStream()
            .mapValues(Delays::result)
            .to(results, Produced.with(Serdes.String(), Json.of(Result.class)));
        return builder.build();
    }

    private static Result result(String key, Sums sums) {
        String[] group = key.split("\\|");
        return new Result(group[0], group[1].replace("Z", ".000Z"), sums.n(), (double) sums.total() / sums.n(), sums.worst());
    }
}
