import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.StringReader;
import java.lang.reflect.Field;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.config.*;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Configuration by Apache Kafka's own classes, as JSON. "definitions" prints what its keys are; "properties TEXT…" what
 * java.util.Properties reads in texts; "broker HOST:PORT CHANGE…" changes a fresh broker 1, each CHANGE being the JSON of
 * [type, name, key, value], and prints how it describes everything, and then what becomes of changes after "--".
 */
public class ConfigFromKafka {
    static final ObjectMapper JSON = new ObjectMapper();

    static Map<String, Object> keys(ConfigDef definition) {
        Map<String, Object> keys = new TreeMap<>();
        definition.configKeys().forEach((name, key) -> {
            Object value = key.defaultValue == ConfigDef.NO_DEFAULT_VALUE ? "__required__" : key.defaultValue;
            if (value instanceof Class) value = ((Class<?>) value).getName();
            keys.put(name, Arrays.asList(key.type.toString().toLowerCase(), value));
        });
        return keys;
    }

    static ConfigDef definition(Class<?> owner) throws Exception {
        for (Field field : owner.getDeclaredFields())
            if (ConfigDef.class.isAssignableFrom(field.getType()) && !field.getName().startsWith("SERVER_")) {
                field.setAccessible(true);
                return (ConfigDef) field.get(null);
            }
        throw new NoSuchFieldException(owner.getName());
    }

    static Map<String, Object> definitions() throws Exception {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("broker", keys(AbstractKafkaConfig.CONFIG_DEF));
        out.put("topic", keys(definition(LogConfig.class)));
        out.put("group", keys(definition(GroupConfig.class)));
        out.put("client_metrics", keys(definition(ClientMetricsConfigs.class)));
        Map<String, Object> synonyms = new TreeMap<>();
        ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach((topic, names) ->
            synonyms.put(topic, names.stream().map(synonym -> synonym.name()).toList()));
        out.put("broker_keys_of_topic_keys", synonyms);
        Object companion = Class.forName("kafka.server.DynamicBrokerConfig$").getField("MODULE$").get(null);
        List<String> dynamic = new ArrayList<>();
        var names = ((scala.collection.Iterable<?>) companion.getClass().getMethod("AllDynamicConfigs").invoke(companion)).iterator();
        while (names.hasNext()) dynamic.add(names.next().toString());
        out.put("dynamic", dynamic);
        return out;
    }

    static List<Object> properties(List<String> texts) throws Exception {
        List<Object> out = new ArrayList<>();
        for (String text : texts) {
            Properties properties = new Properties();
            properties.load(new StringReader(text));
            out.add(Arrays.asList(text, new TreeMap<>(properties)));
        }
        return out;
    }

    static String change(Admin admin, String text) throws Exception {
        String[] words = JSON.readValue(text, String[].class);
        ConfigResource resource = new ConfigResource(ConfigResource.Type.valueOf(words[0]), words[1]);
        AlterConfigOp set = new AlterConfigOp(new ConfigEntry(words[2], words[3]), AlterConfigOp.OpType.SET);
        try {
            admin.incrementalAlterConfigs(Map.of(resource, List.of(set))).all().get();
            return null;
        } catch (java.util.concurrent.ExecutionException e) {
            return org.apache.kafka.common.protocol.Errors.forException(e.getCause()).name();
        }
    }

    static Map<String, Object> described(Admin admin, ConfigResource resource) throws Exception {
        var options = new DescribeConfigsOptions().includeSynonyms(true);
        Map<String, Object> out = new TreeMap<>();
        for (ConfigEntry entry : admin.describeConfigs(List.of(resource), options).all().get().get(resource).entries()) {
            Map<String, Object> key = new LinkedHashMap<>();
            key.put("value", entry.value());
            key.put("source", entry.source().toString());
            key.put("read_only", entry.isReadOnly());
            key.put("type", entry.type().toString().toLowerCase());
            key.put("synonyms", entry.synonyms().stream()
                .map(synonym -> Arrays.asList(synonym.name(), synonym.value(), synonym.source().toString())).toList());
            out.put(entry.name(), key);
        }
        return out;
    }

    static Map<String, Object> broker(String address, List<String> changes) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            admin.createTopics(List.of(new NewTopic("t", 1, (short) 1))).all().get();
            int end = changes.indexOf("--");
            for (String text : changes.subList(0, end)) change(admin, text);
            Thread.sleep(2000); // until the broker has heard of them
            Map<String, Object> out = new LinkedHashMap<>();
            out.put("topic", described(admin, new ConfigResource(ConfigResource.Type.TOPIC, "t")));
            out.put("broker", described(admin, new ConfigResource(ConfigResource.Type.BROKER, "1")));
            out.put("all_brokers", described(admin, new ConfigResource(ConfigResource.Type.BROKER, "")));
            out.put("group", described(admin, new ConfigResource(ConfigResource.Type.GROUP, "g")));
            out.put("client_metrics", described(admin, new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "s")));
            List<String> refusals = new ArrayList<>();
            for (String text : changes.subList(end + 1, changes.size())) refusals.add(change(admin, text));
            return Map.of("described", out, "refusals", refusals);
        }
    }

    public static void main(String[] arguments) throws Exception {
        List<String> rest = List.of(arguments).subList(1, arguments.length);
        Object out = switch (arguments[0]) {
            case "definitions" -> definitions();
            case "properties" -> properties(rest);
            default -> broker(rest.get(0), rest.subList(1, rest.size()));
        };
        System.out.println(JSON.writeValueAsString(out));
    }
}
