import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.coordinator.group.api.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;

/**
 * Runs Kafka's own assignor of Streams groups. Input, a line each: "subtopology ID PARTITIONS stateful|stateless",
 * "member ID PROCESS ACTIVE STANDBY OFFSETS" (SUBTOPOLOGY:PARTITION[:OFFSET],... or -), then "assign REPLICAS".
 * Output: "ID ACTIVE STANDBY" a member in order of ids, then "done".
 */
public final class AssignTasks {
    private record Subtopology(int partitions, boolean stateful) { }

    private record Topology(Map<String, Subtopology> all) implements TopologyDescriber {
        public List<String> subtopologies() {
            return List.copyOf(all.keySet());
        }

        public int maxNumInputPartitions(String id) {
            return all.get(id).partitions();
        }

        public boolean isStateful(String id) {
            return all.get(id).stateful();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        Map<String, Subtopology> subtopologies = new LinkedHashMap<>();
        Map<String, MemberMetadataAndStateImpl> members = new HashMap<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "subtopology":
                    subtopologies.put(words[1],
                        new Subtopology(Integer.parseInt(words[2]), words[3].equals("stateful")));
                    break;
                case "member":
                    members.put(words[1], new MemberMetadataAndStateImpl(
                        Optional.empty(), Optional.empty(), words[2], Map.of(),
                        tasks(words[3]), tasks(words[4]), Map.of(), offsets(words[5]), Map.of()));
                    break;
                default:
                    AssignmentConfigsImpl configs =
                        AssignmentConfigsImpl.DEFAULT.withNumStandbyReplicas(Integer.parseInt(words[1]));
                    new TreeMap<>(new StickyTaskAssignor()
                        .assign(new GroupSpecImpl(members, configs), new Topology(subtopologies))
                        .members()).forEach(AssignTasks::print);
                    System.out.println("done");
                    subtopologies.clear();
                    members = new HashMap<>(); // a cleared one would keep the size of its table
            }
        }
    }

    private static void print(String member, MemberAssignment assignment) {
        System.out.println(
            member + " " + text(assignment.activeTasks()) + " " + text(assignment.standbyTasks()));
    }

    private static String text(Map<String, Set<Integer>> tasks) {
        StringBuilder out = new StringBuilder();
        new TreeMap<>(tasks).forEach((id, partitions) -> new TreeSet<>(partitions).forEach(
            partition -> out.append(out.length() == 0 ? "" : ",").append(id).append(':').append(partition)));
        return out.length() == 0 ? "-" : out.toString();
    }

    private static Map<String, Set<Integer>> tasks(String text) {
        Map<String, Set<Integer>> tasks = new HashMap<>();
        offsets(text).forEach((id, partitions) -> tasks.put(id, new HashSet<>(partitions.keySet())));
        return tasks;
    }

    private static Map<String, Map<Integer, Long>> offsets(String text) {
        Map<String, Map<Integer, Long>> offsets = new HashMap<>();
        for (String task : text.equals("-") ? new String[0] : text.split(",")) {
            String[] parts = task.split(":");
            offsets.computeIfAbsent(parts[0], id -> new HashMap<>())
                .put(Integer.parseInt(parts[1]), parts.length > 2 ? Long.parseLong(parts[2]) : 0L);
        }
        return offsets;
    }
}
