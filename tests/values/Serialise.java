import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.TimestampProto;
import com.google.protobuf.util.JsonFormat;
import io.apicurio.registry.rest.client.RegistryClient;
import io.apicurio.registry.rest.v2.beans.ArtifactMetaData;
import io.apicurio.registry.rest.v2.beans.ArtifactReference;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaSerializer;
import io.apicurio.registry.serde.protobuf.ProtobufKafkaSerializer;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.lang.reflect.Proxy;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Supplier;
import org.apache.avro.Conversions;
import org.apache.avro.Schema;
import org.apache.avro.data.TimeConversions;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serializer;

/**
 * Serialises values with Apicurio's serialisers, in Confluent's framing and with ids of 8 bytes.
 *
 * Standard input: a JSON object with the schemas. Standard output: a JSON object with the values in
 * hex, by format and size of the id, and the schemas that were registered, in the order of their
 * global ids, which begin with 1; content ids begin with 101.
 */
public class Serialise {
  static final ObjectMapper JSON = new ObjectMapper();
  static final List<Map<String, Object>> REGISTERED = new ArrayList<>();
  static final long CONTENT_IDS = 100;
  static final Map<String, Object> SETTINGS =
      Map.of(
          "apicurio.registry.headers.enabled", false,
          "apicurio.registry.auto-register", true,
          "apicurio.registry.serde.validation-enabled", false);

  public static void main(String[] arguments) throws Exception {
    JsonNode given = JSON.readTree(System.in);
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("avro", avro(given.get("avro").asText()));
    values.put("protobuf", protobuf(given));
    values.put("json-schema", json(given));
    System.out.println(JSON.writeValueAsString(Map.of("values", values, "schemas", REGISTERED)));
  }

  static Map<String, String> avro(String text) {
    GenericData data = GenericData.get();
    data.addLogicalTypeConversion(new Conversions.DecimalConversion());
    data.addLogicalTypeConversion(new Conversions.UUIDConversion());
    data.addLogicalTypeConversion(new TimeConversions.DateConversion());
    data.addLogicalTypeConversion(new TimeConversions.TimestampMicrosConversion());
    Schema schema = new Schema.Parser().parse(text);
    Schema address = schema.getField("to").schema();
    GenericRecord oslo = new GenericData.Record(address);
    oslo.put("city", "Oslo");
    GenericRecord rome = new GenericData.Record(address);
    rome.put("city", "Rome");
    rome.put("zip", 184);
    GenericRecord order = new GenericData.Record(schema);
    order.put("id", new UUID(0, 7));
    order.put("to", oslo);
    order.put("billed", rome);
    order.put("amount", new BigDecimal("12.34"));
    order.put("at", Instant.parse("2026-01-31T12:00:00.000005Z"));
    order.put("day", LocalDate.of(2026, 1, 31));
    order.put("items", Arrays.asList(1, "two"));
    order.put("tags", Map.of("raw", ByteBuffer.wrap(new byte[] {-1, 0})));
    order.put("kind", new GenericData.EnumSymbol(schema.getField("kind").schema(), "B"));
    return hex(() -> new AvroKafkaSerializer<GenericRecord>(registry()), order);
  }

  static Map<String, String> protobuf(JsonNode given) throws Exception {
    byte[] bytes = Base64.getDecoder().decode(given.get("descriptor").asText());
    FileDescriptor file =
        FileDescriptor.buildFrom(
            FileDescriptorProto.parseFrom(bytes),
            new FileDescriptor[] {TimestampProto.getDescriptor()});
    Descriptor type = file.findMessageTypeByName("Outer").findNestedTypeByName("Order");
    DynamicMessage.Builder order = DynamicMessage.newBuilder(type);
    JsonFormat.parser().merge(given.get("message").toString(), order);
    return hex(() -> new ProtobufKafkaSerializer<DynamicMessage>(registry()), order.build());
  }

  static Map<String, String> json(JsonNode given) throws Exception {
    register("orders", "JSON", given.get("jsonSchema").asText(), List.of());
    Map<?, ?> value = JSON.convertValue(given.get("value"), Map.class);
    return hex(() -> new JsonSchemaKafkaSerializer<Map<?, ?>>(registry()), value);
  }

  /**
   * Serialises a value with ids of 4 bytes, as Confluent's serialisers, with ids of 8 bytes, and
   * with either id in a header: "ID" is the value then, "ID HEADER" that of a header; "json" and
   * "json HEADER" with Avro's JSON encoding.
   */
  static <T> Map<String, String> hex(Supplier<Serializer<T>> serializers, T value) {
    Map<String, String> values = new LinkedHashMap<>();
    for (boolean asConfluent : new boolean[] {true, false}) {
      Map<String, Object> settings = new LinkedHashMap<>(SETTINGS);
      settings.put("apicurio.registry.as-confluent", asConfluent);
      Serializer<T> serializer = serializers.get();
      serializer.configure(settings, false);
      byte[] bytes = serializer.serialize("orders", value);
      values.put(asConfluent ? "4" : "8", HexFormat.of().formatHex(bytes));
    }
    for (String id : new String[] {"globalId", "contentId", "json"}) {
      Map<String, Object> settings = new LinkedHashMap<>(SETTINGS);
      settings.put("apicurio.registry.headers.enabled", true);
      settings.put("apicurio.registry.use-id", id.equals("json") ? "globalId" : id);
      settings.put("apicurio.registry.avro.encoding", id.equals("json") ? "JSON" : "BINARY");
      Serializer<T> serializer = serializers.get();
      serializer.configure(settings, false);
      Headers headers = new RecordHeaders();
      values.put(id, HexFormat.of().formatHex(serializer.serialize("orders", headers, value)));
      for (Header one : headers) {
        values.put(id + " " + one.key(), HexFormat.of().formatHex(one.value()));
      }
    }
    return values;
  }

  /** Makes a registry in memory, of those calls that serialisers make. */
  static RegistryClient registry() {
    return (RegistryClient)
        Proxy.newProxyInstance(
            Serialise.class.getClassLoader(),
            new Class<?>[] {RegistryClient.class},
            (proxy, method, arguments) -> {
              switch (method.getName()) {
                case "createArtifact":
                  return created(arguments);
                case "getArtifactMetaData":
                  return described((String) arguments[1], REGISTERED.size());
                case "getContentByGlobalId":
                  String text =
                      (String) REGISTERED.get(((Long) arguments[0]).intValue() - 1).get("schema");
                  return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
                case "getArtifactReferencesByGlobalId":
                  return List.of();
                case "close":
                  return null;
                default:
                  throw new UnsupportedOperationException(method.toString());
              }
            });
  }

  @SuppressWarnings("unchecked")
  static ArtifactMetaData created(Object[] arguments) throws Exception {
    List<Map<String, Object>> references = new ArrayList<>();
    String text = null;
    for (Object argument : arguments) {
      if (argument instanceof InputStream) {
        text = new String(((InputStream) argument).readAllBytes(), StandardCharsets.UTF_8);
      } else if (argument instanceof List) {
        for (ArtifactReference one : (List<ArtifactReference>) argument) {
          references.add(
              Map.of("name", one.getName(), "subject", one.getArtifactId(), "version", 1));
        }
      }
    }
    String subject = (String) arguments[1];
    return described(subject, register(subject, (String) arguments[3], text, references));
  }

  /** Registers a schema, once; returns its id. */
  static long register(
      String subject, String type, String text, List<Map<String, Object>> references) {
    Map<String, Object> schema =
        Map.of("subject", subject, "type", type, "schema", text, "references", references);
    if (!REGISTERED.contains(schema)) {
      REGISTERED.add(schema);
    }
    return REGISTERED.indexOf(schema) + 1;
  }

  static ArtifactMetaData described(String subject, long id) {
    ArtifactMetaData made = new ArtifactMetaData();
    made.setGroupId("default");
    made.setId(subject);
    made.setVersion("1");
    made.setGlobalId(id);
    made.setContentId(id + CONTENT_IDS);
    return made;
  }
}
