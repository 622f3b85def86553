import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;

/** Prints the keys of each `ConfigDef` of a broker as JSON, without their documentation. */
public class ConfigDefs {
    private static final Map<String, String> OWNERS = new LinkedHashMap<>();

    static {
        OWNERS.put("broker", "org.apache.kafka.server.config.AbstractKafkaConfig");
        OWNERS.put("topic", "org.apache.kafka.storage.internals.log.LogConfig");
        OWNERS.put("group", "org.apache.kafka.coordinator.group.GroupConfig");
        OWNERS.put("client-metrics", "org.apache.kafka.server.metrics.ClientMetricsConfigs");
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> resources = new LinkedHashMap<>();
        for (Map.Entry<String, String> owner : OWNERS.entrySet()) {
            resources.put(owner.getKey(), keys(owner.getKey(), definition(owner.getValue())));
        }
        System.out.println(new ObjectMapper().writeValueAsString(resources));
    }

    private static ConfigDef definition(String owner) throws Exception {
        for (Field field : Class.forName(owner).getDeclaredFields()) {
            if (field.getName().equals("CONFIG") || field.getName().equals("CONFIG_DEF")) {
                field.setAccessible(true);
                return (ConfigDef) field.get(null);
            }
        }
        throw new NoSuchFieldException("no ConfigDef in " + owner);
    }

    private static Map<String, Object> keys(String resource, ConfigDef definition) throws Exception {
        Map<?, ?> updates = (Map<?, ?>) Class.forName("org.apache.kafka.server.config.DynamicBrokerConfig")
            .getMethod("dynamicConfigUpdateModes").invoke(null);
        Map<String, Object> keys = new TreeMap<>();
        for (ConfigDef.ConfigKey key : definition.configKeys().values()) {
            if (key.internalConfig && resource.equals("broker")) {
                continue;
            }
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
            if (resource.equals("broker")) {
                Object update = updates.get(key.name);
                facts.put("update", update == null ? "read-only" : update);
            }
            if (resource.equals("topic")) {
                facts.put("synonyms", synonyms(key.name));
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

    /** The broker's keys with a topic's default, in the order in which they apply, and their unit. */
    private static List<Object> synonyms(String name) {
        return ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.getOrDefault(name, List.of()).stream()
            .<Object>map(synonym -> List.of(synonym.name(), factor(synonym))).toList();
    }

    /** What a number in the broker's unit is multiplied by; 1 if it stays as it is. */
    private static long factor(ConfigSynonym synonym) {
        String converted = synonym.converter().apply("1");
        return Long.parseLong(converted);
    }
}
