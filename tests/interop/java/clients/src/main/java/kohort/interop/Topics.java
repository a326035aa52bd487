package kohort.interop;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** The life of a topic in an administrator's hands. --topic T, which isn't there yet. */
final class Topics {
    static Object run(Options options) throws Exception {
        String topic = options.text("topic");
        var found = new LinkedHashMap<String, Object>();
        try (var admin = options.admin(); var producer = options.producer(Map.of())) {
            var cluster = admin.describeCluster(new DescribeClusterOptions());
            found.put("nodes", cluster.nodes().get().size());
            found.put("controller", cluster.controller().get() != null);
            found.put("cluster id", !cluster.clusterId().get().isEmpty());

            var wanted = new NewTopic(topic, Optional.of(2), Optional.empty()).configs(Map.of("segment.bytes", "1048576"));
            var created = admin.createTopics(List.of(wanted));
            found.put("created partitions", created.numPartitions(topic).get());
            found.put("created replication", created.replicationFactor(topic).get());
            found.put("created config", created.config(topic).get().get("segment.bytes").value());
            found.put("create again", create(admin, topic, 1, 1));
            found.put("create with two replicas", create(admin, topic + "-2", 1, 2));
            found.put("create with bad name", create(admin, "bad name!", 1, 1));
            found.put("create without partitions", create(admin, topic + "-0", 0, 1));
            found.put("create with bad config", Interop.errorOf(() -> admin.createTopics(List.of(
                    new NewTopic(topic + "-c", 1, (short) 1).configs(Map.of("retention.ms", "soon")))).all().get()));

            var described = admin.describeTopics(Set.of(topic)).allTopicNames().get().get(topic);
            found.put("described partitions", described.partitions().size());
            found.put("same id", described.topicId().equals(created.topicId(topic).get()));
            found.put("by id", admin.describeTopics(TopicCollection.ofTopicIds(
                    Set.of(described.topicId()))).allTopicIds().get().get(described.topicId()).name().equals(topic));
            found.put("describe unknown", Interop.errorOf(() -> admin.describeTopics(Set.of("unknown")).allTopicNames().get()));
            found.put("listed", admin.listTopics().names().get().contains(topic));

            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
            found.put("partitions then", admin.describeTopics(Set.of(topic)).allTopicNames().get().get(topic).partitions().size());
            found.put("fewer partitions", Interop.errorOf(() ->
                    admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(1))).all().get()));

            var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            alter(admin, resource, new AlterConfigOp(new ConfigEntry("retention.ms", "86400000"), AlterConfigOp.OpType.SET),
                    new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.APPEND),
                    new AlterConfigOp(new ConfigEntry("segment.bytes", ""), AlterConfigOp.OpType.DELETE));
            var configs = admin.describeConfigs(Set.of(resource)).all().get().get(resource);
            found.put("retention", List.of(configs.get("retention.ms").value(), configs.get("retention.ms").source().name()));
            found.put("cleanup", configs.get("cleanup.policy").value());
            found.put("segment bytes", List.of(configs.get("segment.bytes").value(), configs.get("segment.bytes").source().name()));
            found.put("alter to nonsense", Interop.errorOf(() -> alter(admin, resource,
                    new AlterConfigOp(new ConfigEntry("retention.ms", "soon"), AlterConfigOp.OpType.SET))));
            found.put("configured topics", admin.listConfigResources(Set.of(ConfigResource.Type.TOPIC), new ListConfigResourcesOptions())
                    .all().get().contains(resource));
            alter(admin, resource, new AlterConfigOp(new ConfigEntry("cleanup.policy", "delete"), AlterConfigOp.OpType.SET));

            var first = new TopicPartition(topic, 0);
            long start = 1_700_000_000_000L;
            for (int i = 0; i < 5; i++) {
                producer.send(new ProducerRecord<>(topic, 0, start + new int[] {0, 10, 40, 20, 30}[i], null, "value")).get();
            }
            found.put("earliest", offset(admin, first, OffsetSpec.earliest()));
            found.put("latest", offset(admin, first, OffsetSpec.latest()));
            found.put("max timestamp", offset(admin, first, OffsetSpec.maxTimestamp()));
            found.put("for timestamp", offset(admin, first, OffsetSpec.forTimestamp(start + 15)));
            found.put("for the future", offset(admin, first, OffsetSpec.forTimestamp(start + 1000)));
            found.put("earliest local", offset(admin, first, OffsetSpec.earliestLocal()));
            found.put("latest tiered", offset(admin, first, OffsetSpec.latestTiered()));
            found.put("deleted before", deleteBefore(admin, first, 3));
            found.put("earliest then", offset(admin, first, OffsetSpec.earliest()));
            found.put("delete too many", Interop.errorOf(() -> deleteBefore(admin, first, 100)));
            found.put("deleted all", deleteBefore(admin, first, -1));

            int node = cluster.nodes().get().iterator().next().id();
            found.put("log directories", admin.describeLogDirs(Set.of(node)).allDescriptions().get().get(node).values().stream()
                    .flatMap(directory -> directory.replicaInfos().keySet().stream())
                    .filter(partition -> partition.topic().equals(topic)).count());
            found.put("producers", admin.describeProducers(Set.of(first)).all().get().get(first).activeProducers().size());
            found.put("elect leaders", electionErrors(admin, first));
            found.put("reassign to nobody", Interop.errorOf(() -> admin.alterPartitionReassignments(
                    Map.of(first, Optional.of(new NewPartitionReassignment(List.of(4711))))).all().get()));
            found.put("cancel no reassignment", Interop.errorOf(() -> admin.alterPartitionReassignments(
                    Map.of(first, Optional.<NewPartitionReassignment>empty())).all().get()));
            found.put("reassignments", admin.listPartitionReassignments().reassignments().get().size());
            var features = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
            found.put("features", features.containsKey("transaction.version"));

            admin.deleteTopics(Set.of(topic)).all().get();
            found.put("delete again", Interop.errorOf(() -> admin.deleteTopics(Set.of(topic)).all().get()));
            found.put("listed at last", admin.listTopics().names().get().contains(topic));
        }
        return found;
    }

    private static String create(Admin admin, String name, int partitions, int replicas) {
        return Interop.errorOf(() -> admin.createTopics(List.of(new NewTopic(name, partitions, (short) replicas))).all().get());
    }

    private static void alter(Admin admin, ConfigResource resource, AlterConfigOp... changes) throws Exception {
        Map<ConfigResource, Collection<AlterConfigOp>> all = Map.of(resource, List.of(changes));
        admin.incrementalAlterConfigs(all).all().get();
    }

    private static long deleteBefore(Admin admin, TopicPartition partition, long offset) throws Exception {
        var deleted = admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(offset)));
        return deleted.lowWatermarks().get(partition).get().lowWatermark();
    }

    private static long offset(Admin admin, TopicPartition partition, OffsetSpec spec) throws Exception {
        return admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get().offset();
    }

    private static String electionErrors(Admin admin, TopicPartition partition) throws Exception {
        return admin.electLeaders(ElectionType.PREFERRED, Set.of(partition)).partitions().get().get(partition)
                .map(error -> error.getClass().getSimpleName()).orElse("none");
    }
}
