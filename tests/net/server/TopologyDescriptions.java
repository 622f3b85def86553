import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.coordinator.group.api.streams.StreamsGroupTopologyDescription;
import org.apache.kafka.coordinator.group.api.streams.StreamsGroupTopologyDescriptionPlugin;

/** Stores descriptions of topologies in memory; it fails for the group "unreadable" (KIP-1331). */
public final class TopologyDescriptions implements StreamsGroupTopologyDescriptionPlugin {
  private final Map<String, StreamsGroupTopologyDescription> stored = new ConcurrentHashMap<>();

  @Override
  public void configure(Map<String, ?> configs) {}

  @Override
  public CompletableFuture<Void> setTopology(
      String groupId, int epoch, StreamsGroupTopologyDescription description) {
    stored.put(groupId + ":" + epoch, description);
    return CompletableFuture.completedFuture(null);
  }

  @Override
  public CompletableFuture<Void> deleteTopology(String groupId) {
    stored.keySet().removeIf(key -> key.startsWith(groupId + ":"));
    return CompletableFuture.completedFuture(null);
  }

  @Override
  public CompletableFuture<StreamsGroupTopologyDescription> getTopology(
      String groupId, int epoch) {
    if (groupId.equals("unreadable")) {
      return CompletableFuture.failedFuture(new IllegalStateException("unreadable"));
    }
    return CompletableFuture.completedFuture(stored.get(groupId + ":" + epoch));
  }

  @Override
  public void close() {}
}
