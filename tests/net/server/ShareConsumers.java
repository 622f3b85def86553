import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Two share consumers of a group release fives once, reject sevens, and accept the rest. */
public final class ShareConsumers {
  private final Map<String, String> outcomes = new TreeMap<>();

  public static void main(String[] arguments) {
    new ShareConsumers().run(arguments[0], Integer.parseInt(arguments[1]));
  }

  private static KafkaShareConsumer<String, String> consumer(String bootstrap) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", bootstrap);
    properties.put("group.id", "g");
    properties.put("share.acknowledgement.mode", "explicit");
    properties.put("max.poll.records", "4");
    StringDeserializer text = new StringDeserializer();
    KafkaShareConsumer<String, String> made = new KafkaShareConsumer<>(properties, text, text);
    made.subscribe(List.of("t"));
    return made;
  }

  private void run(String bootstrap, int count) {
    try (KafkaShareConsumer<String, String> first = consumer(bootstrap);
        KafkaShareConsumer<String, String> second = consumer(bootstrap)) {
      long end = System.nanoTime() + Duration.ofSeconds(50).toNanos();
      while (outcomes.size() < count && System.nanoTime() < end) {
        poll(first);
        poll(second);
      }
    }
    outcomes.forEach((value, outcome) -> System.out.println(value + " " + outcome));
  }

  private void poll(KafkaShareConsumer<String, String> consumer) {
    for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(100))) {
      int number = Integer.parseInt(each.value());
      int deliveries = each.deliveryCount().orElseThrow();
      if (number % 5 == 0 && deliveries == 1) {
        consumer.acknowledge(each, AcknowledgeType.RELEASE);
        continue;
      }
      AcknowledgeType type = number % 7 == 0 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT;
      consumer.acknowledge(each, type);
      String before = outcomes.put(String.format("%03d", number), type + " " + deliveries);
      if (before != null) {
        throw new IllegalStateException(number + " was delivered again");
      }
    }
    consumer.commitSync().values().forEach(error -> error.ifPresent(each -> {
      throw each;
    }));
  }
}
