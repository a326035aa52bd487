package kohort;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType;
import org.apache.kafka.clients.admin.FinalizedVersionRange;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.FaultHandlerException;

/** A cluster as Kafka's tests see it: one broker of Kohort's. */
public final class KohortCluster implements ClusterInstance {
    private static final int NODE = 0;

    private final ClusterConfig config;
    private final KohortServer server;
    private final Internals internals;
    private boolean started;
    private boolean stopped;

    public KohortCluster(ClusterConfig config) {
        this.config = config;
        Map<String, String> properties = new HashMap<>(config.serverProperties());
        properties.putAll(config.perServerOverrideProperties().getOrDefault(NODE, Map.of()));
        server = new KohortServer(NODE, properties);
        internals = new Internals(this, NODE, properties);
    }

    @Override
    public void start() {
        if (started) {
            return;
        }
        if (config.numBrokers() > 1) {
            throw new IllegalStateException("the test needs " + config.numBrokers() + " brokers, there is one");
        }
        started = true;
        server.start();
        try (Admin admin = admin()) {
            setFeatures(admin);
            // The coordinators make their topics when somebody asks for them; the tests want to have made them.
            admin.listConsumerGroupOffsets("none").partitionsToOffsetAndMetadata().get();
            admin.fenceProducers(List.of("none")).all().get();
        } catch (Exception error) {
            server.kill();
            throw new IllegalStateException("the cluster could not be set up", error);
        }
    }

    /** Sets the features that the test wants at another level. */
    private void setFeatures(Admin admin) throws Exception {
        Map<String, FinalizedVersionRange> levels = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
        Map<String, FeatureUpdate> updates = new HashMap<>();
        config.features().forEach((feature, level) -> {
            FinalizedVersionRange now = levels.get(feature.featureName());
            short has = now == null ? 0 : now.maxVersionLevel();
            if (!feature.featureName().equals(MetadataVersion.FEATURE_NAME) && has != level) {
                UpgradeType type = level < has ? UpgradeType.SAFE_DOWNGRADE : UpgradeType.UPGRADE;
                updates.put(feature.featureName(), new FeatureUpdate(level, type));
            }
        });
        if (!updates.isEmpty()) {
            admin.updateFeatures(updates, new UpdateFeaturesOptions()).all().get();
        }
    }

    @Override
    public void stop() {
        if (started && !stopped) {
            stopped = true;
            server.stop();
        }
    }

    @Override
    public boolean started() {
        return started;
    }

    @Override
    public boolean stopped() {
        return stopped;
    }

    @Override
    public void shutdownBroker(int broker) {
        server.stop();
    }

    @Override
    public void startBroker(int broker) {
        server.start();
    }

    @Override
    public void waitForReadyBrokers() {
        // A server that has started is ready.
    }

    @Override
    public void waitTopicCreation(String topic, int partitions) {
        // A topic is there once its creation was answered.
    }

    @Override
    public void waitTopicDeletion(String topic) {
        // A topic is gone once its deletion was answered.
    }

    @Override
    public String bootstrapServers() {
        return server.bootstrap();
    }

    @Override
    public String bootstrapControllers() {
        return server.bootstrap();
    }

    @Override
    public List<Integer> brokerBoundPorts() {
        return List.of(server.port());
    }

    @Override
    public List<Integer> controllerBoundPorts() {
        return List.of(server.port());
    }

    @Override
    public Map<Integer, KafkaBroker> brokers() {
        return Map.of(NODE, internals.broker());
    }

    @Override
    public Map<Integer, ControllerServer> controllers() {
        return Map.of(NODE, internals.controller());
    }

    @Override
    public Map<Integer, KafkaBroker> aliveBrokers() {
        return brokers();
    }

    @Override
    public Set<Integer> controllerIds() {
        return Set.of(NODE);
    }

    @Override
    public ListenerName clientListener() {
        return config.brokerListenerName();
    }

    @Override
    public ListenerName controllerListenerName() {
        return config.controllerListenerName();
    }

    @Override
    public String clusterId() {
        try (Admin admin = admin()) {
            return admin.describeCluster().clusterId().get();
        } catch (Exception error) {
            throw new IllegalStateException("the cluster doesn't say its id", error);
        }
    }

    @Override
    public ClusterConfig config() {
        return config;
    }

    @Override
    public Type type() {
        return Type.KRAFT;
    }

    @Override
    public Optional<FaultHandlerException> firstFatalException() {
        return Optional.empty();
    }

    @Override
    public Optional<FaultHandlerException> firstNonFatalException() {
        return Optional.empty();
    }
}
