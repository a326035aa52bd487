// Prints what Kafka's own assignors give: java -cp '<kafka>/libs/*' Vectors.java > kafka.jsonl
import java.nio.ByteBuffer;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.internals.*;
import org.apache.kafka.common.TopicPartition;

public class Vectors {
    static final Random random = new Random(20);

    public static void main(String[] args) {
        for (int group = 0; group < 24; group++) {
            boolean even = group % 2 == 0;
            Map<String, Integer> topics = new TreeMap<>();
            for (int topic = 0; topic < 1 + random.nextInt(4); topic++)
                topics.put("topic-" + topic, 1 + random.nextInt(9));
            Map<String, Subscription> members = new TreeMap<>();
            for (int member = 0; member < 1 + random.nextInt(5); member++) {
                List<String> wanted = topics.keySet().stream()
                    .filter(topic -> even || random.nextInt(3) > 0).collect(Collectors.toList());
                Subscription subscription = new Subscription(wanted);
                if (random.nextInt(3) == 0)
                    subscription.setGroupInstanceId(Optional.of("instance-" + random.nextInt(100)));
                members.put("member-" + (char) ('a' + random.nextInt(26)) + member, subscription);
            }
            // Two generations: what the sticky ones gave in the first is owned in the second, where a member has gone.
            Map<String, Map<String, List<TopicPartition>>> before = new TreeMap<>();
            for (String name : List.of("range", "roundrobin", "sticky", "cooperative-sticky"))
                before.put(name, print(name, topics, members, Map.of(), -1));
            if (members.size() > 1)
                members.remove(members.keySet().iterator().next());
            for (String name : List.of("sticky", "cooperative-sticky"))
                print(name, topics, members, before.get(name), 7);
        }
    }

    static Map<String, List<TopicPartition>> print(String name, Map<String, Integer> topics,
            Map<String, Subscription> members, Map<String, List<TopicPartition>> owned, int generation) {
        AbstractPartitionAssignor assignor = assignor(name);
        Map<String, Subscription> sent = new HashMap<>();
        List<String> shown = new ArrayList<>();
        for (String id : members.keySet()) {
            Subscription plain = members.get(id);
            ConsumerPartitionAssignor own = assignor(name);
            List<TopicPartition> had = owned.getOrDefault(id, List.of());
            if (!owned.isEmpty())
                own.onAssignment(new Assignment(had), new ConsumerGroupMetadata("g", generation, id, Optional.empty()));
            boolean keeps = name.equals("cooperative-sticky");
            Subscription subscription = new Subscription(plain.topics(), own.subscriptionUserData(new TreeSet<>(plain.topics())),
                keeps ? had : List.of(), keeps ? generation : -1, Optional.empty());
            shown.add(quoted(id) + ":" + quoted(hex(ConsumerProtocol.serializeSubscription(subscription))));
            subscription.setGroupInstanceId(plain.groupInstanceId());
            sent.put(id, subscription);
        }
        Map<String, Integer> read = new TreeMap<>(topics);
        read.keySet().removeIf(topic -> members.values().stream().noneMatch(member -> member.topics().contains(topic)));
        Map<String, List<TopicPartition>> given = assignor.assign(read, sent);
        String instances = members.entrySet().stream().filter(e -> e.getValue().groupInstanceId().isPresent())
            .map(e -> quoted(e.getKey()) + ":" + quoted(e.getValue().groupInstanceId().get())).collect(Collectors.joining(","));
        String assignments = new TreeMap<>(given).entrySet().stream().map(e -> quoted(e.getKey()) + ":" + e.getValue().stream()
            .map(p -> "[" + quoted(p.topic()) + "," + p.partition() + "]").collect(Collectors.joining(",", "[", "]")))
            .collect(Collectors.joining(","));
        String counts = topics.entrySet().stream().map(e -> quoted(e.getKey()) + ":" + e.getValue()).collect(Collectors.joining(","));
        System.out.println("{\"assignor\":" + quoted(name) + ",\"topics\":{" + counts + "},\"instances\":{" + instances
            + "},\"members\":{" + String.join(",", shown) + "},\"assignment\":{" + assignments + "}}");
        return given;
    }

    static AbstractPartitionAssignor assignor(String name) {
        switch (name) {
            case "range": return new RangeAssignor();
            case "roundrobin": return new RoundRobinAssignor();
            case "sticky": return new StickyAssignor();
            default: return new CooperativeStickyAssignor();
        }
    }

    static String quoted(String text) {
        return "\"" + text + "\"";
    }

    static String hex(ByteBuffer bytes) {
        return HexFormat.of().formatHex(bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.arrayOffset() + bytes.limit());
    }
}
