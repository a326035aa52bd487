package kohort.benchmarks;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.Stores;

/**
 * Restores the store "counts". The argument is JSON: servers, application, source, partitions, directory. Tells
 * "phase SECONDS CPU NAME" when restoring begins and ends, and when the application runs with the stores of all
 * partitions: it may run before that, without a task.
 */
public final class Restoring {
    private static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    public static void main(String[] args) throws Exception {
        JsonNode options = new ObjectMapper().readTree(args[0]);
        var configs = new Properties();
        configs.put("application.id", options.get("application").asText());
        configs.put("bootstrap.servers", options.get("servers").asText());
        configs.put("state.dir", options.get("directory").asText());
        configs.put("group.protocol", "streams");
        configs.put("processing.guarantee", "exactly_once_v2");
        var builder = new StreamsBuilder();
        builder.addStateStore(Stores.keyValueStoreBuilder(
            Stores.persistentKeyValueStore("counts"), Serdes.ByteArray(), Serdes.ByteArray()).withLoggingEnabled(Map.of()));
        builder.stream(options.get("source").asText(), Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .process(Idle::new, "counts");
        var streams = new KafkaStreams(builder.build(), configs);
        var listener = new Listener(options.get("partitions").asInt());
        streams.setGlobalStateRestoreListener(listener);
        streams.setStateListener((now, before) -> listener.onState(now == KafkaStreams.State.RUNNING));
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        tell("opening");
        streams.start();
    }

    private static void tell(String name) {
        System.out.printf("phase %.3f %.3f %s%n", System.currentTimeMillis() / 1e3, SYSTEM.getProcessCpuTime() / 1e9, name);
    }

    /** Has the store, and nothing to do with it. */
    private static final class Idle implements Processor<byte[], byte[], Void, Void> {
        @Override
        public void process(Record<byte[], byte[]> record) { }
    }

    /** Tells of phases; the end of a restore is called for each partition, also where nothing is left to restore. */
    private static final class Listener implements StateRestoreListener {
        private final int partitions;
        private final Set<TopicPartition> ended = new HashSet<>();
        private boolean begun;
        private boolean running;

        Listener(int partitions) {
            this.partitions = partitions;
        }

        synchronized void onState(boolean running) {
            this.running = running;
            tellIfReady();
        }

        @Override
        public synchronized void onRestoreStart(TopicPartition partition, String store, long start, long end) {
            if (!begun) {
                begun = true;
                tell("restoring");
            }
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long restored) { }

        @Override
        public synchronized void onRestoreEnd(TopicPartition partition, String store, long restored) {
            if (ended.add(partition) && ended.size() == partitions) {
                tell("restored");
                tellIfReady();
            }
        }

        private void tellIfReady() {
            if (running && ended.size() == partitions) {
                tell("ready");
            }
        }
    }
}
