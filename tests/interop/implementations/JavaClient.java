// Runs Apache Kafka's clients, each as a connection requests: all in one JVM, which starts slowly.
//
// The port on loopback is written to stdout. The first line of a connection is a request; the results are
// lines of JSON. The JVM ends at the end of its stdin.
//
//     {verb: "produce", settings, topic, values}   -> {"places": [[partition, offset], ...]}
//     {verb: "read", settings, topic}              -> lines as in process_reader.py
//     an error                                     -> {"error": the stack trace}
//
// Settings have Kafka's names.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
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

    private final BufferedReader input;
    private final PrintStream output;

    private JavaClient(Socket socket) throws IOException {
        input = new BufferedReader(
            new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
        output = new PrintStream(socket.getOutputStream(), true, StandardCharsets.UTF_8);
    }

    public static void main(String[] arguments) throws Exception {
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        System.out.println(server.getLocalPort());
        daemon(() -> {
            while (true) {
                Socket socket = server.accept();
                daemon(() -> serve(socket));
            }
        });
        while (System.in.read() >= 0) {
            continue;
        }
        System.exit(0);
    }

    private interface Task {
        void run() throws Exception;
    }

    private static void daemon(Task task) {
        Thread thread = new Thread(() -> {
            try {
                task.run();
            } catch (Exception error) {
                error.printStackTrace();
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private static void serve(Socket socket) throws IOException {
        try (socket) {
            JavaClient client = new JavaClient(socket);
            try {
                client.run(JSON.readTree(client.input.readLine()));
            } catch (Throwable error) {
                StringWriter trace = new StringWriter();
                error.printStackTrace(new PrintWriter(trace));
                client.print("error", trace.toString());
            }
        }
    }

    private void run(JsonNode request) throws Exception {
        Properties settings = new Properties();
        request.get("settings").fields().forEachRemaining(
            each -> settings.put(each.getKey(), each.getValue().asText()));
        if (request.get("verb").asText().equals("produce")) {
            produce(settings, request);
        } else {
            read(settings, request.get("topic").asText());
        }
    }

    private synchronized void print(String name, Object payload) {
        try {
            output.println(JSON.writeValueAsString(Map.of(name, payload)));
        } catch (com.fasterxml.jackson.core.JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }

    private void produce(Properties settings, JsonNode request) throws Exception {
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

    private void read(Properties settings, String topic) throws Exception {
        BlockingQueue<String> commands = new LinkedBlockingQueue<>();
        daemon(() -> readCommands(commands));
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

    private void readCommands(BlockingQueue<String> commands) {
        try {
            input.lines().forEach(commands::add);
        } finally {
            commands.add(END);
        }
    }

    private void execute(KafkaConsumer<?, ?> consumer, String topic, String[] words) {
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

    private final class Listener implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            print("assigned", pairs(partitions));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            print("revoked", pairs(partitions));
        }

        private List<List<Object>> pairs(Collection<TopicPartition> partitions) {
            return partitions.stream()
                .map(each -> List.<Object>of(each.topic(), each.partition())).toList();
        }
    }
}
