import java.io.IOException;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts the words of the topic "lines", exactly once, with the Streams protocol (KIP-1071): each
 * count of a word is a record of the topic "counts". It ends when its input does.
 */
public final class WordCounts {
  public static void main(String[] arguments) throws IOException {
    Properties properties = new Properties();
    properties.put("application.id", "words");
    properties.put("bootstrap.servers", arguments[0]);
    properties.put("state.dir", arguments[1]);
    properties.put("group.protocol", "streams");
    properties.put("processing.guarantee", "exactly_once_v2");
    properties.put("replication.factor", "-1");
    properties.put("num.stream.threads", "2");
    properties.put("commit.interval.ms", "100");
    properties.put("statestore.cache.max.bytes", "0");
    properties.put("producer.transaction.timeout.ms", arguments[2]);
    properties.put("main.consumer.auto.offset.reset", "earliest");
    StreamsBuilder builder = new StreamsBuilder();
    builder.stream("lines", Consumed.with(Serdes.String(), Serdes.String()))
        .flatMapValues(line -> Arrays.asList(line.split(" ")))
        .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
        .count(
            Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String())
                .withValueSerde(Serdes.Long()))
        .toStream()
        .mapValues(count -> Long.toString(count))
        .to("counts", Produced.with(Serdes.String(), Serdes.String()));
    KafkaStreams streams = new KafkaStreams(builder.build(), properties);
    streams.setUncaughtExceptionHandler(
        error -> {
          error.printStackTrace();
          System.exit(1);
          return null;
        });
    streams.setStateListener((after, before) -> System.out.println(after));
    streams.start();
    while (System.in.read() >= 0) {}
    streams.close();
  }
}
