// Deletes old segments of a closed log as Apache Kafka does: folder, segment.bytes, retention.ms, retention.bytes, time.
import java.io.File;
import java.lang.reflect.Proxy;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class RetainLog {
    public static void main(String[] args) throws Exception {
        Properties configs = new Properties();
        configs.put("internal.segment.bytes", args[1]);
        configs.put("retention.ms", args[2]);
        configs.put("retention.bytes", args[3]);
        configs.put("message.timestamp.before.max.ms", "9223372036854775807");
        long now = Long.parseLong(args[4]);
        Time time = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, given) ->
                method.getName().equals("milliseconds") ? now : method.invoke(Time.SYSTEM, given));
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = UnifiedLog.create(new File(args[0]), new LogConfig(configs), 0L, 0L, scheduler,
            new BrokerTopicStats(), time, 60000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false),
            60000, new LogDirFailureChannel(1), true, Optional.empty());
        log.updateHighWatermark(log.logEndOffset());
        log.deleteOldSegments();
        System.out.println(log.logStartOffset());
        log.logSegments().forEach(each -> System.out.println(each.baseOffset()));
        log.close();
        scheduler.shutdown();
    }
}
