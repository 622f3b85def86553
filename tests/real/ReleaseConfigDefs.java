import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;

/** Prints the keys of the `ConfigDef`s of brokers and topics as JSON; runs with each release. */
public class ReleaseConfigDefs {
    private static final Map<String, List<String>> OWNERS = Map.of(
        "broker", List.of("org.apache.kafka.server.config.AbstractKafkaConfig", "kafka.server.KafkaConfig$"),
        "topic", List.of("org.apache.kafka.storage.internals.log.LogConfig", "kafka.log.LogConfig$"));
    private static final String OF_THE_BROKER = "SERVER_CONFIG_DEF";

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> resources = new TreeMap<>();
        for (Map.Entry<String, List<String>> owner : OWNERS.entrySet()) {
            resources.put(owner.getKey(), keys(definition(owner.getValue())));
        }
        resources.put("synonyms", synonyms());
        System.out.println(new ObjectMapper().writeValueAsString(resources));
    }

    private static ConfigDef definition(List<String> owners) throws Exception {
        for (String owner : owners) {
            for (Field field : fields(owner)) {
                boolean isDefinition = ConfigDef.class.isAssignableFrom(field.getType());
                if (isDefinition && Modifier.isStatic(field.getModifiers()) && !field.getName().equals(OF_THE_BROKER)) {
                    field.setAccessible(true);
                    return (ConfigDef) field.get(null);
                }
            }
        }
        throw new NoSuchFieldException("no ConfigDef in " + owners);
    }

    /** The broker's key with the default of a topic's key: the first one. */
    private static Map<String, String> synonyms() throws Exception {
        Map<String, String> firsts = new TreeMap<>();
        try {
            Class<?> owner = Class.forName("org.apache.kafka.server.config.ServerTopicConfigSynonyms");
            Map<?, ?> all = (Map<?, ?>) owner.getField("ALL_TOPIC_CONFIG_SYNONYMS").get(null);
            for (Map.Entry<?, ?> row : all.entrySet()) {
                Object first = ((List<?>) row.getValue()).get(0);
                firsts.put((String) row.getKey(), (String) first.getClass().getMethod("name").invoke(first));
            }
        } catch (ClassNotFoundException older) {
            Class<?> owner = Class.forName("kafka.log.LogConfig$");
            Object all = owner.getMethod("TopicConfigSynonyms").invoke(owner.getField("MODULE$").get(null));
            Class<?> scalaMap = Class.forName("scala.collection.Map");
            Object rows = scalaMap.getMethod("iterator").invoke(all);
            Class<?> iterator = Class.forName("scala.collection.Iterator");
            while ((boolean) iterator.getMethod("hasNext").invoke(rows)) {
                Object row = iterator.getMethod("next").invoke(rows);
                firsts.put((String) row.getClass().getMethod("_1").invoke(row),
                    (String) row.getClass().getMethod("_2").invoke(row));
            }
        }
        return firsts;
    }

    private static Field[] fields(String owner) {
        try {
            return Class.forName(owner).getDeclaredFields();
        } catch (ClassNotFoundException absent) {
            return new Field[0];
        }
    }

    private static Map<String, Object> keys(ConfigDef definition) {
        Map<String, Object> keys = new TreeMap<>();
        for (ConfigDef.ConfigKey key : definition.configKeys().values()) {
            Map<String, Object> facts = new LinkedHashMap<>();
            facts.put("type", key.type.name());
            boolean hasDefault = key.defaultValue != ConfigDef.NO_DEFAULT_VALUE;
            facts.put("default", hasDefault ? ConfigDef.convertToString(key.defaultValue, key.type) : null);
            facts.put("valid", key.validator == null ? null : key.validator.toString());
            if (key.type == ConfigDef.Type.LIST) {
                facts.put("empty", accepts(key, List.of()));
                facts.put("duplicates", accepts(key, twice(key)));
            }
            if (key.internalConfig) {
                facts.put("internal", true);
            }
            keys.put(key.name, facts);
        }
        return keys;
    }

    /** Whether the validator accepts a value. */
    private static boolean accepts(ConfigDef.ConfigKey key, Object value) {
        try {
            if (key.validator != null) {
                key.validator.ensureValid(key.name, value);
            }
            return true;
        } catch (ConfigException invalid) {
            return false;
        }
    }

    /** A list of the key's first valid value, twice. */
    private static List<String> twice(ConfigDef.ConfigKey key) {
        String valid = String.valueOf(key.validator);
        String first = valid.startsWith("[") && !valid.startsWith("[partitionId]")
            ? valid.substring(1, valid.length() - 1).split(", ")[0] : "1:1";
        return Arrays.asList(first, first);
    }
}
