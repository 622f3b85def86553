import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Transactions of Kafka's own clients; prints what consumers with read_committed see. */
public final class Transactions {
    private final String bootstrap;

    private Transactions(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] arguments) throws Exception {
        new Transactions(arguments[0]).run();
    }

    private KafkaProducer<String, String> producer() {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("transactional.id", "java");
        config.put("max.block.ms", "60000");
        KafkaProducer<String, String> made =
            new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
        made.initTransactions();
        return made;
    }

    private KafkaConsumer<String, String> consumer(String topic) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("group.id", "of-" + topic);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("isolation.level", "read_committed");
        KafkaConsumer<String, String> made =
            new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        made.subscribe(List.of(topic));
        return made;
    }

    private static List<String> read(KafkaConsumer<String, String> consumer, int count) {
        List<String> found = new ArrayList<>();
        while (found.size() < count) {
            for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofSeconds(1))) {
                found.add(each.value());
            }
        }
        return found;
    }

    private void run() throws Exception {
        KafkaProducer<String, String> first = producer();
        for (int number = 0; number < 4; number++) {
            first.beginTransaction();
            first.send(new ProducerRecord<>("in", "v" + number)).get();
            if (number % 2 == 0) {
                first.commitTransaction();
            } else {
                first.abortTransaction();
            }
        }
        KafkaConsumer<String, String> consumer = consumer("in");
        List<String> values = read(consumer, 2);
        System.out.println("in " + values);
        first.beginTransaction();
        for (String value : values) {
            first.send(new ProducerRecord<>("out", value + "!"));
        }
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (TopicPartition each : consumer.assignment()) {
            offsets.put(each, new OffsetAndMetadata(consumer.position(each)));
        }
        first.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        first.commitTransaction();
        System.out.println("out " + read(consumer("out"), 2));
        System.out.println("committed " + (long) consumer.committed(offsets.keySet()).values().stream()
            .mapToLong(OffsetAndMetadata::offset).sum());
        first.beginTransaction();
        first.send(new ProducerRecord<>("in", "zombie")).get();
        KafkaProducer<String, String> second = producer();
        try {
            first.commitTransaction();
            System.out.println("not fenced");
        } catch (KafkaException error) {
            System.out.println("fenced " + error.getClass().getSimpleName());
        }
        second.beginTransaction();
        second.send(new ProducerRecord<>("in", "last"));
        second.commitTransaction();
        System.out.println("then " + read(consumer, 1));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            System.out.println("state " + admin.describeTransactions(List.of("java"))
                .description("java").get().state());
            System.out.println("listed " + admin.listTransactions().all().get().size());
            TopicPartition in = new TopicPartition("in", 0);
            System.out.println("producers " + admin.describeProducers(List.of(in))
                .partitionResult(in).get().activeProducers().size());
        }
        Runtime.getRuntime().halt(0);
    }
}
