package kohort.benchmarks;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.coordinator.group.api.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;

/** Each line of input is a group, as JSON; each line of output says what StickyTaskAssignor makes of it, and how long it took. */
public final class Assignor {
    record Part(int partitions, boolean stateful) { }

    record Member(String process, Map<String, Set<Integer>> active, Map<String, Set<Integer>> standby) { }

    /** The group; assigned for so many seconds to warm up, then so many rounds. */
    record Problem(Map<String, Part> subtopologies, Map<String, Member> members, int standbys, double warmup, int rounds) { }

    record Tasks(Map<String, Set<Integer>> active, Map<String, Set<Integer>> standby) { }

    record Answer(Map<String, Tasks> members, List<Long> nanos) { }

    public static void main(String[] args) throws Exception {
        var json = new ObjectMapper();
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(json.writeValueAsString(solve(json.readValue(line, Problem.class))));
            System.out.flush();
        }
    }

    private static Answer solve(Problem problem) {
        var assignor = new StickyTaskAssignor();
        GroupSpec group = group(problem);
        TopologyDescriber topology = topology(problem);
        long until = System.nanoTime() + (long) (problem.warmup * 1e9);
        do {
            assignor.assign(group, topology);
        } while (System.nanoTime() < until);
        var nanos = new ArrayList<Long>();
        GroupAssignment assignment = null;
        for (int round = 0; round < problem.rounds; round++) {
            long started = System.nanoTime();
            assignment = assignor.assign(group, topology);
            nanos.add(System.nanoTime() - started);
        }
        var members = new HashMap<String, Tasks>();
        assignment.members().forEach((id, member) -> members.put(id, new Tasks(member.activeTasks(), member.standbyTasks())));
        return new Answer(members, nanos);
    }

    private static GroupSpec group(Problem problem) {
        var members = new HashMap<String, MemberMetadataAndStateImpl>();
        problem.members.forEach((id, member) -> members.put(id, new MemberMetadataAndStateImpl(
                Optional.empty(), Optional.empty(), member.process, Map.of(),
                member.active, member.standby, Map.of(), Map.of(), Map.of())));
        return new GroupSpecImpl(members, new AssignmentConfigsImpl(problem.standbys, List.of()));
    }

    private static TopologyDescriber topology(Problem problem) {
        List<String> names = problem.subtopologies.keySet().stream().sorted().toList();
        return new TopologyDescriber() {
            @Override
            public List<String> subtopologies() {
                return names;
            }

            @Override
            public int maxNumInputPartitions(String subtopology) throws NoSuchElementException {
                return problem.subtopologies.get(subtopology).partitions;
            }

            @Override
            public boolean isStateful(String subtopology) {
                return problem.subtopologies.get(subtopology).stateful;
            }
        };
    }
}
