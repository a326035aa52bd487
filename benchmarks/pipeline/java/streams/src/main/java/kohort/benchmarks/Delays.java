package kohort.benchmarks;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Properties;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/** Delays of flights by origin and hour. The argument is JSON: servers, application, source, results, directory, standbys. */
public final class Delays {
    private static final ObjectMapper JSON = new ObjectMapper();

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
        JsonNode options = JSON.readTree(args[0]);
        var configs = new Properties();
        configs.put("application.id", options.get("application").asText());
        configs.put("bootstrap.servers", options.get("servers").asText());
        configs.put("state.dir", options.get("directory").asText());
        configs.put("group.protocol", "streams");
        configs.put("processing.guarantee", "exactly_once_v2");
        configs.put("num.stream.threads", "2");
        configs.put("auto.offset.reset", "earliest");
        var streams = new KafkaStreams(topology(options.get("source").asText(), options.get("results").asText()), configs);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                System.out.println("started " + System.currentTimeMillis() / 1000.0);
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }

    private static Topology topology(String source, String results) {
        var builder = new StreamsBuilder();
        builder.stream(source, Consumed.with(Serdes.ByteArray(), json(Flight.class)))
            .filter((key, flight) -> flight.dep_delay() != null)
            .map((key, flight) -> KeyValue.pair(flight.origin() + "|" + flight.time_hour(), flight.dep_delay()))
            .groupByKey(Grouped.with("delays", Serdes.String(), Serdes.Long()))
            .aggregate(
                () -> new Sums(0, 0, 0),
                (key, delay, sums) -> sums.with(delay),
                Materialized.with(Serdes.String(), json(Sums.class)))
            .toStream()
            .mapValues(Delays::result)
            .to(results, Produced.with(Serdes.String(), json(Result.class)));
        return builder.build();
    }

    private static Result result(String key, Sums sums) {
        String[] group = key.split("\\|");
        return new Result(group[0], group[1].replace("Z", ".000Z"), sums.n(), (double) sums.total() / sums.n(), sums.worst());
    }

    private static <T> Serde<T> json(Class<T> type) {
        ObjectWriter writer = JSON.writerFor(type);
        ObjectReader reader = JSON.readerFor(type);
        Serializer<T> serializer = (topic, value) -> {
            try {
                return value == null ? null : writer.writeValueAsBytes(value);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        };
        Deserializer<T> deserializer = (topic, bytes) -> {
            try {
                return bytes == null ? null : reader.readValue(bytes);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        };
        return Serdes.serdeFrom(serializer, deserializer);
    }
}
