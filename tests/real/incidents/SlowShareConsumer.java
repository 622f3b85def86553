import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A share consumer whose work takes three seconds each time. */
public final class SlowShareConsumer {
  private static final int TIMES = 3;

  public static void main(String[] arguments) throws InterruptedException {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", arguments[0]);
    properties.put("group.id", arguments[1]);
    properties.put("client.id", arguments[2]);
    properties.put("share.acknowledgement.mode", "explicit");
    StringDeserializer text = new StringDeserializer();
    try (KafkaShareConsumer<String, String> consumer =
        new KafkaShareConsumer<>(properties, text, text)) {
      consumer.subscribe(List.of(arguments[3]));
      long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
      for (int work = 0; work < TIMES && System.nanoTime() < end; ) {
        ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(500));
        if (records.isEmpty()) {
          continue;
        }
        work++;
        Thread.sleep(3000);
        records.forEach(consumer::acknowledge);
        consumer.commitSync();
      }
    }
  }
}
