// Runs Apache Kafka's client as its arguments request; writes the results to stdout as lines of JSON.
//
//     produce {settings, topic, values}   -> {"places": [[partition, offset], ...]}
//     read    {settings, topic}           -> lines as in process_reader.py
//
// Settings have Kafka's names.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public final class JavaClient {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String END = "end";

    public static void main(String[] arguments) throws Exception {
        JsonNode request = JSON.readTree(arguments[1]);
        Properties settings = new Properties();
        request.get("settings").fields().forEachRemaining(
            each -> settings.put(each.getKey(), each.getValue().asText()));
        if (arguments[0].equals("produce")) {
            produce(settings, request);
        } else {
            read(settings, request.get("topic").asText());
        }
    }

    private static void print(String name, Object payload) {
        try {
            System.out.println(JSON.writeValueAsString(Map.of(name, payload)));
        } catch (com.fasterxml.jackson.core.JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }

    private static void produce(Properties settings, JsonNode request) throws Exception {
        ByteArraySerializer bytes = new ByteArraySerializer();
        List<List<Long>> places = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode value : request.get("values")) {
                byte[] key = ("k" + sent.size()).getBytes(StandardCharsets.UTF_8);
                sent.add(producer.send(new ProducerRecord<>(
                    request.get("topic").asText(), key,
                    value.asText().getBytes(StandardCharsets.UTF_8))));
            }
            for (Future<RecordMetadata> each : sent) {
                RecordMetadata where = each.get();
                places.add(where.hasOffset()
                    ? List.of((long) where.partition(), where.offset()) : List.of(-1L, -1L));
            }
        }
        print("places", places);
    }

    private static void read(Properties settings, String topic) throws Exception {
        BlockingQueue<String> commands = new LinkedBlockingQueue<>();
        Thread input = new Thread(() -> readCommands(commands));
        input.setDaemon(true);
        input.start();
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of(topic), new Listener());
            for (String line = commands.poll(); !END.equals(line); line = commands.poll()) {
                if (line != null) {
                    String[] words = line.split(" ");
                    execute(consumer, topic, words);
                    print("done", words[0]);
                }
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(50))) {
                    print("seen", List.of(each.topic(), each.partition(), each.offset(),
                        text(each.key()), text(each.value())));
                }
            }
        }
    }

    private static String text(byte[] data) {
        return new String(data, StandardCharsets.UTF_8);
    }

    private static void readCommands(BlockingQueue<String> commands) {
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        lines.lines().forEach(commands::add);
        commands.add(END);
    }

    private static void execute(KafkaConsumer<?, ?> consumer, String topic, String[] words) {
        int number = words.length > 1 ? Integer.parseInt(words[1]) : -1;
        List<TopicPartition> partition = List.of(new TopicPartition(topic, Math.max(number, 0)));
        Map<TopicPartition, OffsetAndMetadata> offsets =
            Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(Math.max(number, 0)));
        switch (words[0]) {
            case "pause" -> consumer.pause(partition);
            case "resume" -> consumer.resume(partition);
            case "seek" -> consumer.seek(partition.get(0), Long.parseLong(words[2]));
            case "commit" -> {
                if (number < 0) {
                    consumer.commitSync();
                } else {
                    consumer.commitSync(offsets);
                }
            }
            case "begin" -> consumer.commitAsync(offsets, (committed, error) -> {
                if (error == null) {
                    print("committed", number);
                }
            });
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static final class Listener implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            print("assigned", pairs(partitions));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            print("revoked", pairs(partitions));
        }

        private static List<List<Object>> pairs(Collection<TopicPartition> partitions) {
            return partitions.stream()
                .map(each -> List.<Object>of(each.topic(), each.partition())).toList();
        }
    }
}
