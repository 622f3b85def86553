import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Runs Kafka's own assignors. Input, a line each: "assignor CLASS", then "topic NAME PARTITIONS", then
 * "member ID INSTANCE-OR-- BASE64-OF-SUBSCRIPTION", then "go". Output: "ID TOPIC:PARTITION ..." a member
 * in order of ids, then "done".
 */
public final class Assign {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ConsumerPartitionAssignor assignor = null;
        List<PartitionInfo> partitions = new ArrayList<>();
        Map<String, Subscription> members = new HashMap<>();
        Node node = new Node(1, "localhost", 9092);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "assignor":
                    assignor = (ConsumerPartitionAssignor)
                        Class.forName("org.apache.kafka.clients.consumer." + words[1])
                            .getDeclaredConstructor().newInstance();
                    partitions.clear();
                    members.clear();
                    break;
                case "topic":
                    for (int i = 0; i < Integer.parseInt(words[2]); i++) {
                        partitions.add(new PartitionInfo(
                            words[1], i, node, new Node[] {node}, new Node[] {node}));
                    }
                    break;
                case "member":
                    Subscription subscription = ConsumerProtocol.deserializeSubscription(
                        ByteBuffer.wrap(Base64.getDecoder().decode(words[3])));
                    if (!words[2].equals("-")) {
                        subscription.setGroupInstanceId(Optional.of(words[2]));
                    }
                    members.put(words[1], subscription);
                    break;
                default:
                    Cluster cluster = new Cluster("c", List.of(node), partitions, Set.of(), Set.of());
                    new TreeMap<>(assignor.assign(cluster, new GroupSubscription(members)).groupAssignment())
                        .forEach((member, assignment) -> {
                            StringBuilder out = new StringBuilder(member);
                            for (TopicPartition each : assignment.partitions()) {
                                out.append(' ').append(each.topic()).append(':').append(each.partition());
                            }
                            System.out.println(out);
                        });
                    System.out.println("done");
                    System.out.flush();
            }
        }
    }
}
