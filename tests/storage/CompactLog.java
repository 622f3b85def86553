// Compacts a closed log with Apache Kafka's own cleaner: folder, segment.bytes, delete.retention.ms, times.
import java.io.File;
import java.lang.reflect.Proxy;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class CompactLog {
    public static void main(String[] args) throws Exception {
        Properties configs = new Properties();
        configs.put("cleanup.policy", "compact");
        configs.put("internal.segment.bytes", args[1]);
        configs.put("delete.retention.ms", args[2]);
        configs.put("file.delete.delay.ms", "0");
        long now = Long.parseLong(args[3]);  // producers expire by this clock
        Time time = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, given) ->
                method.getName().equals("milliseconds") ? now : method.invoke(Time.SYSTEM, given));
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = UnifiedLog.create(new File(args[0]), new LogConfig(configs), 0L, 0L, scheduler,
            new BrokerTopicStats(), time, 60000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false),
            60000, new LogDirFailureChannel(1), true, Optional.empty());
        log.updateHighWatermark(log.logEndOffset());
        Throttler throttler = new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "bytes", "bytes", Time.SYSTEM);
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(1 << 20), 1 << 20, 1 << 20, 0.9, throttler,
            Time.SYSTEM, (TopicPartition partition) -> { });
        for (int at = 3; at < args.length; at++) {
            LogToClean dirty = new LogToClean(log, 0L, log.activeSegment().baseOffset(), false);
            System.out.println(cleaner.doClean(dirty, Long.parseLong(args[at])).getKey());
        }
        log.close();
        scheduler.shutdown();
    }
}
