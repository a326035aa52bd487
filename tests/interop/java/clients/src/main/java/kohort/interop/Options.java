package kohort.interop;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The command line: --option value. A name with a dot in it is one of the clients' own configuration keys. */
final class Options {
    private final Map<String, String> values = new HashMap<>();

    Options(String[] args) {
        for (int i = 1; i + 1 < args.length; i += 2) {
            values.put(args[i].substring(2), args[i + 1]);
        }
    }

    String text(String name) {
        Interop.check(values.containsKey(name), "--" + name + " is missing");
        return values.get(name);
    }

    int number(String name, int otherwise) {
        return values.containsKey(name) ? number(name) : otherwise;
    }

    int number(String name) {
        return Integer.parseInt(text(name));
    }

    KafkaProducer<String, String> producer(Map<String, ?> defaults) {
        return new KafkaProducer<>(configs(defaults), new StringSerializer(), new StringSerializer());
    }

    KafkaConsumer<String, String> consumer(Map<String, ?> defaults) {
        return new KafkaConsumer<>(configs(defaults), new StringDeserializer(), new StringDeserializer());
    }

    KafkaShareConsumer<String, String> shareConsumer(Map<String, ?> defaults) {
        return new KafkaShareConsumer<>(configs(defaults), new StringDeserializer(), new StringDeserializer());
    }

    Admin admin() {
        return Admin.create(configs(Map.of("request.timeout.ms", 15000, "default.api.timeout.ms", 20000)));
    }

    private Map<String, Object> configs(Map<String, ?> defaults) {
        // Metadata of topics that were made a moment ago is asked for again soon.
        Map<String, Object> configs = new HashMap<>(Map.of("retry.backoff.ms", 20, "retry.backoff.max.ms", 200));
        configs.putAll(defaults);
        values.forEach((name, value) -> {
            if (name.contains(".")) {
                configs.put(name, value);
            }
        });
        return configs;
    }
}
