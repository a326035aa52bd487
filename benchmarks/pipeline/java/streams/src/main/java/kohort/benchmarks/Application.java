package kohort.benchmarks;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Properties;
import java.util.function.BiFunction;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;

/** Runs a topology, as options in JSON say: servers, application, source, results, directory, standbys. */
public final class Application {
    private Application() { }

    /** The topology is made for the names of the source and of the results. */
    public static void run(String json, BiFunction<String, String, Topology> topology) throws Exception {
        JsonNode options = Json.MAPPER.readTree(json);
        var configs = new Properties();
        configs.put("application.id", options.get("application").asText());
        configs.put("bootstrap.servers", options.get("servers").asText());
        configs.put("state.dir", options.get("directory").asText());
        configs.put("group.protocol", "streams");
        configs.put("processing.guarantee", "exactly_once_v2");
        configs.put("num.stream.threads", "2");
        configs.put("auto.offset.reset", "earliest");
        var streams = new KafkaStreams(topology.apply(options.get("source").asText(), options.get("results").asText()), configs);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                System.out.println("started " + System.currentTimeMillis() / 1000.0);
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }
}
