// Prints what the assignors of Kafka's group coordinator give: java -cp '<jars of kafka-group-coordinator>/*' Vectors.java > kafka.jsonl
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.*;
import org.apache.kafka.coordinator.group.modern.*;

public class Vectors {
    static final Random random = new Random(17);

    public static void main(String[] args) {
        for (int number = 0; number < 24; number++) {
            boolean alike = number % 2 == 0;
            Map<Uuid, Integer> topics = new TreeMap<>();
            for (int topic = 0; topic < 1 + random.nextInt(4); topic++)
                topics.put(new Uuid(random.nextLong() >>> 1, random.nextLong() >>> 1), 1 + random.nextInt(9));
            Map<String, Set<Uuid>> members = new TreeMap<>();
            Map<String, String> instances = new TreeMap<>();
            for (int member = 0; member < 2 + random.nextInt(6); member++)
                join(members, instances, topics, alike);
            for (String name : List.of("uniform", "range", "simple")) {
                // Generations: what one gave is what members have in the next, in which some have come, gone, or subscribe to less.
                Map<String, Set<Uuid>> now = new TreeMap<>(members);
                Map<String, Map<Uuid, Set<Integer>>> had = new TreeMap<>();
                for (int generation = 0; generation < 4; generation++) {
                    had = print(name, topics, now, instances, had);
                    if (generation == 0)
                        join(now, instances, topics, alike);
                    else if (generation == 1)
                        now.remove(now.keySet().stream().skip(random.nextInt(now.size())).findFirst().get());
                    else if (!alike)
                        now.replaceAll((id, wanted) -> random.nextInt(3) > 0 ? wanted : some(topics));
                }
            }
        }
    }

    static void join(Map<String, Set<Uuid>> members, Map<String, String> instances, Map<Uuid, Integer> topics, boolean alike) {
        String id = "member-" + (char) ('a' + random.nextInt(26)) + members.size();
        members.put(id, alike ? topics.keySet() : some(topics));
        if (random.nextInt(3) == 0)
            instances.put(id, "instance-" + random.nextInt(1000));
    }

    static Set<Uuid> some(Map<Uuid, Integer> topics) {
        Set<Uuid> wanted = topics.keySet().stream().filter(topic -> random.nextInt(3) > 0).collect(Collectors.toCollection(TreeSet::new));
        return wanted.isEmpty() ? topics.keySet() : wanted;
    }

    static Map<String, Map<Uuid, Set<Integer>>> print(String name, Map<Uuid, Integer> topics, Map<String, Set<Uuid>> members,
            Map<String, String> instances, Map<String, Map<Uuid, Set<Integer>>> had) {
        Map<String, MemberSubscriptionAndAssignmentImpl> specs = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        had.keySet().retainAll(members.keySet());
        members.forEach((id, wanted) -> {
            Map<Uuid, Set<Integer>> theirs = had.getOrDefault(id, Map.of());
            specs.put(id, new MemberSubscriptionAndAssignmentImpl(Optional.empty(), Optional.ofNullable(instances.get(id)), wanted,
                new Assignment(Collections.unmodifiableMap(theirs))));
            theirs.forEach((topic, partitions) -> partitions.forEach(partition ->
                owners.computeIfAbsent(topic, each -> new HashMap<>()).put(partition, id)));
        });
        boolean alike = new HashSet<>(members.values()).size() == 1;
        GroupSpec group = new GroupSpecImpl(specs, alike ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS, owners);
        SubscribedTopicDescriber described = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topic) {
                return topics.getOrDefault(topic, -1);
            }
            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
        PartitionAssignor assignor = name.equals("uniform") ? new UniformAssignor() : name.equals("range") ? new RangeAssignor() : new SimpleAssignor();
        Map<String, Map<Uuid, Set<Integer>>> given = new TreeMap<>();
        assignor.assign(group, described).members().forEach((id, target) -> given.put(id, target.partitions()));
        System.out.println("{\"assignor\":" + quoted(name)
            + ",\"topics\":" + object(topics, topic -> hex(topic), Object::toString)
            + ",\"instances\":" + object(instances, id -> id, Vectors::quoted)
            + ",\"members\":" + object(members, id -> id, wanted -> wanted.stream().map(topic -> quoted(hex(topic))).collect(Collectors.joining(",", "[", "]")))
            + ",\"had\":" + object(had, id -> id, Vectors::partitions)
            + ",\"target\":" + object(given, id -> id, Vectors::partitions) + "}");
        return given;
    }

    static String partitions(Map<Uuid, Set<Integer>> theirs) {
        return object(new TreeMap<>(theirs), topic -> hex(topic), numbers -> new TreeSet<>(numbers).toString().replace(" ", ""));
    }

    static <K, V> String object(Map<K, V> map, java.util.function.Function<K, String> key, java.util.function.Function<V, String> value) {
        return map.entrySet().stream().map(e -> quoted(key.apply(e.getKey())) + ":" + value.apply(e.getValue()))
            .collect(Collectors.joining(",", "{", "}"));
    }

    static String hex(Uuid id) {
        return String.format("%016x%016x", id.getMostSignificantBits(), id.getLeastSignificantBits());
    }

    static String quoted(String text) {
        return "\"" + text + "\"";
    }
}
