package kohort;

import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyString;
import static org.mockito.Mockito.RETURNS_DEEP_STUBS;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.LeaderAndIsr;

/**
 * What Kafka's tests look up inside its JVM: the broker's configuration, and which topics it knows.
 *
 * <p>The configuration is made of the same properties that the server has; the rest is asked of the server.
 */
final class Internals {
    private final KohortCluster cluster;
    private final int node;
    private final BrokerServer broker = mock(BrokerServer.class, RETURNS_DEEP_STUBS);
    private final ControllerServer controller = mock(ControllerServer.class, RETURNS_DEEP_STUBS);

    Internals(KohortCluster cluster, int node, Map<String, String> properties) {
        this.cluster = cluster;
        this.node = node;
        KafkaConfig config = config(node, properties);
        when(broker.config()).thenReturn(config);
        when(broker.sharedServer().loader()).thenReturn(null);
        when(broker.groupCoordinator().groupMetadataTopicConfigs()).thenReturn(new Properties());
        when(broker.boundPort(any())).thenAnswer(call -> port());
        when(broker.socketServer().boundPort(any())).thenAnswer(call -> port());
        when(broker.metadataCache().numPartitions(anyString())).thenAnswer(call -> partitions(call.getArgument(0)));
        when(broker.metadataCache().getLeaderAndIsr(anyString(), anyInt()))
            .thenReturn(Optional.of(new LeaderAndIsr(node, List.of(node))));
        when(controller.controller().findAllTopicIds(any())).thenAnswer(call -> CompletableFuture.completedFuture(ids()));
    }

    BrokerServer broker() {
        return broker;
    }

    ControllerServer controller() {
        return controller;
    }

    private static KafkaConfig config(int node, Map<String, String> properties) {
        Map<String, String> all = new HashMap<>(Map.of(
            "process.roles", "broker,controller",
            "node.id", Integer.toString(node),
            "controller.quorum.voters", node + "@127.0.0.1:1",
            "controller.listener.names", "CONTROLLER",
            "listeners", "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:1",
            "listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dir", System.getProperty("kohort.directory")));
        all.putAll(properties);
        return new KafkaConfig(all);
    }

    private int port() {
        return cluster.brokerBoundPorts().get(0);
    }

    private Optional<Integer> partitions(String topic) throws Exception {
        try (Admin admin = cluster.admin()) {
            if (!admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get().contains(topic)) {
                return Optional.empty();
            }
            TopicDescription description = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
            return Optional.of(description.partitions().size());
        }
    }

    private Map<String, Uuid> ids() throws Exception {
        try (Admin admin = cluster.admin()) {
            Map<String, Uuid> ids = new HashMap<>();
            for (TopicListing topic : admin.listTopics().listings().get()) {
                ids.put(topic.name(), topic.topicId());
            }
            return ids;
        }
    }
}
