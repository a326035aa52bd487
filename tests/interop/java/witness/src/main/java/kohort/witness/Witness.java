package kohort.witness;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;

/**
 * Answers lines of JSON: a case with its parameters, and worlds of records, is run record by record, each world in an
 * application of its own, and answered with what came out of each.
 */
public final class Witness {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    /** A record of an input. */
    record Input(String topic, String key, String value, long at) { }

    /** A record of the output. A window's key is {@code key@start} or {@code key@start/end}. */
    record Output(String key, String value, long at) { }

    public static void main(String[] args) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode question = MAPPER.readTree(line);
            var worlds = new ArrayList<List<Output>>();
            for (JsonNode world : question.get("worlds")) {
                worlds.add(run(question.get("case").asText(), question.get("parameters"), world));
            }
            System.out.println(MAPPER.writeValueAsString(worlds));
            System.out.flush();
        }
    }

    private static List<Output> run(String name, JsonNode parameters, JsonNode records) throws Exception {
        var builder = new StreamsBuilder();
        Cases.build(builder, name, parameters);
        var directory = Files.createTempDirectory("witness");
        var settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "witness");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, directory.toString());
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        // Otherwise rows without a match wait for the wall clock, too.
        settings.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0L);
        var outputs = new ArrayList<Output>();
        try (var driver = new TopologyTestDriver(builder.build(), settings)) {
            Map<String, TestInputTopic<String, String>> topics = new HashMap<>();
            var out = driver.createOutputTopic("out", new StringDeserializer(), new StringDeserializer());
            for (JsonNode each : records) {
                var record = MAPPER.treeToValue(each, Input.class);
                topics.computeIfAbsent(record.topic(),
                        topic -> driver.createInputTopic(topic, new StringSerializer(), new StringSerializer()))
                    .pipeInput(record.key(), record.value(), record.at());
                out.readRecordsToList().forEach(
                    made -> outputs.add(new Output(made.key(), made.value(), made.timestamp())));
            }
        }
        Files.delete(directory); // the driver has emptied it
        return outputs;
    }
}
