import com.fasterxml.jackson.databind.*;
import org.apache.kafka.common.protocol.*;
import java.io.*;
import java.nio.*;
import java.util.*;

/** Encodes messages with Apache Kafka's own classes: JSON lines {"class", "version", "json"} in, hex lines out. */
public class FromKafka {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode node = mapper.readTree(line);
            String name = node.get("class").asText();
            short version = (short) node.get("version").asInt();
            try {
                Message message = (Message) Class.forName(name + "JsonConverter")
                    .getMethod("read", JsonNode.class, short.class).invoke(null, node.get("json"), version);
                ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
                byte[] bytes = new byte[buffer.remaining()];
                buffer.get(bytes);
                System.out.println(HexFormat.of().formatHex(bytes));
            } catch (java.lang.reflect.InvocationTargetException e) {
                System.out.println("error " + e.getCause());
            } catch (Exception e) {
                System.out.println("error " + e);
            }
        }
    }
}
