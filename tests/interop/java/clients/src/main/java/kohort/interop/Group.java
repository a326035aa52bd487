package kohort.interop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * A group that grows to three members, shrinks to two and grows again, while records keep coming. --topic T, of six partitions and
 * empty; --assignor CLASS, or "consumer" for the consumer protocol, in which the broker assigns; --static true gives the members instance ids. Every record must be read once.
 */
final class Group {
    private static final int PARTITIONS = 6;

    /** A group at rest: its generation, who owns what, and what each had to give up since the stage before. */
    record Stage(String name, int generation, Map<String, List<Integer>> owns, Map<String, List<Integer>> revoked) { }

    private final Options options;
    private final String topic;
    private final boolean fixed;
    private final Map<String, Member> members = new TreeMap<>();
    private final List<Member> gone = new ArrayList<>();
    private final List<Stage> stages = new ArrayList<>();
    private final KafkaProducer<String, String> producer;
    private int written;

    static Object run(Options options) throws Exception {
        return new Group(options).live();
    }

    private Group(Options options) {
        this.options = options;
        topic = options.text("topic");
        fixed = Boolean.parseBoolean(options.text("static"));
        producer = options.producer(Map.of());
    }

    private Object live() throws Exception {
        try (producer) {
            write();
            for (String name : List.of("a", "b", "c")) {
                join(name);
                settle(name + " joined");
                write();
            }
            leave("b");
            if (!fixed) {
                settle("b left");
                write();
            }
            join("b");
            settle("b came back");
            write();
            List<String> read = awaitRecords();
            for (String name : List.copyOf(members.keySet())) {
                leave(name);
            }
            var found = new LinkedHashMap<String, Object>();
            found.put("stages", stages);
            found.put("written", written);
            found.put("read", read.size());
            found.put("distinct", read.stream().distinct().count());
            return found;
        }
    }

    private void write() throws Exception {
        for (int i = 0; i < 30; i++, written++) {
            producer.send(new ProducerRecord<>(topic, written % PARTITIONS, null, "record-" + written));
        }
        producer.flush();
    }

    private void join(String name) {
        var configs = new HashMap<String, Object>(Map.of("group.id", "group-" + topic, "client.id", name));
        if (options.text("assignor").equals("consumer")) {
            configs.put("group.protocol", "consumer");
        } else {
            configs.put("partition.assignment.strategy", options.text("assignor"));
        }
        if (fixed) {
            configs.put("group.instance.id", "instance-" + name);
        }
        var member = new Member(options, topic, configs);
        members.put(name, member);
        member.start();
    }

    private void leave(String name) throws InterruptedException {
        Member member = members.remove(name);
        member.close();
        gone.add(member);
    }

    /** Wait until all members are in one generation and share all partitions evenly, and note how. */
    private void settle(String name) throws InterruptedException {
        long deadline = System.currentTimeMillis() + 30_000;
        while (!settled()) {
            Interop.check(System.currentTimeMillis() < deadline, name + ", and then no rest: " + shares());
            Thread.sleep(10);
        }
        var owns = new TreeMap<String, List<Integer>>();
        var revoked = new TreeMap<String, List<Integer>>();
        members.forEach((member, state) -> {
            owns.put(member, state.share.partitions());
            revoked.put(member, state.revoked.stream().sorted().toList());
            state.revoked.clear();
        });
        stages.add(new Stage(name, members.values().iterator().next().share.generation(), owns, revoked));
    }

    private boolean settled() {
        var shares = shares().values();
        var owned = shares.stream().flatMap(share -> share.partitions().stream()).toList();
        int most = shares.stream().mapToInt(share -> share.partitions().size()).max().orElse(0);
        int least = shares.stream().mapToInt(share -> share.partitions().size()).min().orElse(0);
        return owned.size() == PARTITIONS && owned.stream().distinct().count() == PARTITIONS && most - least <= 1
                && shares.stream().mapToInt(Member.Share::generation).distinct().count() == 1;
    }

    private Map<String, Member.Share> shares() {
        var shares = new TreeMap<String, Member.Share>();
        members.forEach((name, member) -> {
            if (member.failure != null) {
                throw new AssertionError("member " + name + " failed", member.failure);
            }
            shares.put(name, member.share);
        });
        return shares;
    }

    private List<String> awaitRecords() throws InterruptedException {
        long deadline = System.currentTimeMillis() + 20_000;
        while (true) {
            var read = new ArrayList<String>();
            members.values().forEach(member -> read.addAll(member.read));
            gone.forEach(member -> read.addAll(member.read));
            if (read.stream().distinct().count() == written) {
                return read;
            }
            Interop.check(System.currentTimeMillis() < deadline, "lost records: read " + read.size() + " of " + written);
            Thread.sleep(20);
        }
    }
}
