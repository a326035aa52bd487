package org.apache.kafka.common.test.junit;

import java.util.List;
import kohort.KohortCluster;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;

/**
 * One run of a test, with a cluster of its own: Kohort's.
 *
 * <p>It stands before Kafka's class of this name on the class path. Kafka's extension reads the tests' annotations as
 * ever, and makes one of these where it would have started Kafka's brokers.
 */
public final class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private final String test;
    private final ClusterConfig config;

    public RaftClusterInvocationContext(String test, ClusterConfig config, boolean combined) {
        this.test = test;
        this.config = config;
    }

    @Override
    public String getDisplayName(int index) {
        return test + " [" + index + "]";
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        KohortCluster cluster = new KohortCluster(config);
        return List.of(
            (BeforeEachCallback) context -> {
                if (config.isAutoStart()) {
                    cluster.start();
                }
            },
            (AfterTestExecutionCallback) context -> cluster.stop(),
            new ClusterInstanceParameterResolver(cluster));
    }
}
