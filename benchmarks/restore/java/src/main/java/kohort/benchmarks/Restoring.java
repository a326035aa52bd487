package kohort.benchmarks;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
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
 * "phase SECONDS CPU NAME" when restoring begins and ends, and when all tasks run.
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
        streams.setGlobalStateRestoreListener(new Listener(options.get("partitions").asInt()));
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                tell("ready");
            }
        });
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

    /** Tells when the first partition's restore begins, and when the last one's ends. */
    private static final class Listener implements StateRestoreListener {
        private final int partitions;
        private final AtomicInteger begun = new AtomicInteger();
        private final AtomicInteger ended = new AtomicInteger();

        Listener(int partitions) {
            this.partitions = partitions;
        }

        @Override
        public void onRestoreStart(TopicPartition partition, String store, long start, long end) {
            if (begun.incrementAndGet() == 1) {
                tell("restoring");
            }
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long restored) { }

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long restored) {
            if (ended.incrementAndGet() == partitions) {
                tell("restored");
            }
        }
    }
}
