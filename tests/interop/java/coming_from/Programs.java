import com.fasterxml.jackson.annotation.JsonSubTypes;
import com.fasterxml.jackson.annotation.JsonTypeInfo;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * The Java of docs/coming-from-kafka-streams.md, with what it leaves out. A test puts each block where its heading stands,
 * and asks in lines of JSON what a program gives for records.
 */
public final class Programs {
    private static final Class<?> TEXT = Serdes.StringSerde.class;

    record Question(String program, List<Input> records) { }

    record Input(String topic, String key, byte[] value, long at) { }

    record Output(String topic, String key, byte[] value) { }

    public static void main(String[] args) throws IOException {
        var mapper = new ObjectMapper();
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(mapper.writeValueAsString(run(mapper.readValue(line, Question.class))));
        }
    }

    /** The serde of values that a program takes for granted; that of keys is text. */
    private static Class<?> build(String program, StreamsBuilder builder) {
        switch (program) {
            case "Counting words" -> {
                // Counting words
                return TEXT;
            }
            case "Views of pages by region" -> {
                // Views of pages by region
                return Json.class;
            }
            case "Users with few events" -> {
                // Users with few events
                return Json.class;
            }
            case "A stream joined with a stream" -> {
                // A stream joined with a stream
                return TEXT;
            }
            case "Visits to a site" -> {
                // Visits to a site
                return Json.class;
            }
            case "A punctuator" -> {
                // A punctuator
                return TEXT;
            }
            default -> throw new IllegalArgumentException(program);
        }
    }

    private static List<Output> run(Question question) throws IOException {
        var builder = new StreamsBuilder();
        var directory = Files.createTempDirectory("coming-from");
        var settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "coming-from");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, directory.toString());
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, TEXT);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, build(question.program(), builder));
        // Otherwise rows without a match wait for the wall clock, too.
        settings.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0L);
        var outputs = new ArrayList<Output>();
        try (var driver = new TopologyTestDriver(builder.build(), settings)) {
            for (Input each : question.records()) {
                driver.createInputTopic(each.topic(), new StringSerializer(), new ByteArraySerializer())
                    .pipeInput(each.key(), each.value(), each.at());
            }
            for (String topic : driver.producedTopicNames()) {
                driver.createOutputTopic(topic, new StringDeserializer(), new ByteArrayDeserializer())
                    .readKeyValuesToList().forEach(made -> outputs.add(new Output(topic, made.key, made.value)));
            }
        }
        Files.delete(directory); // the driver has emptied it
        return outputs;
    }

    public static final class Json extends Serdes.WrapperSerde<Value> {
        private static final ObjectMapper MAPPER = new ObjectMapper();

        public Json() {
            super((topic, value) -> bytes(value), (topic, bytes) -> value(bytes));
        }

        private static byte[] bytes(Value value) {
            try {
                return value == null ? null : MAPPER.writeValueAsBytes(value);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private static Value value(byte[] bytes) {
            try {
                return bytes == null ? null : MAPPER.readValue(bytes, Value.class);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }
}

/** Values of several columns, as JSON that says which. */
@JsonTypeInfo(use = JsonTypeInfo.Id.NAME)
@JsonSubTypes({
    @JsonSubTypes.Type(Profile.class), @JsonSubTypes.Type(View.class), @JsonSubTypes.Type(RegionalView.class),
    @JsonSubTypes.Type(Event.class), @JsonSubTypes.Type(Click.class),
})
interface Value { }

record Profile(String user, String region) implements Value { }

record View(String user, String page) implements Value { }

record RegionalView(View view, String region) implements Value { }

record Event(String user) implements Value { }

record Click(String user, String page) implements Value { }
