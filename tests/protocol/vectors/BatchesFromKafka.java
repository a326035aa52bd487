import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.*;
import java.io.*;
import java.nio.*;
import java.nio.charset.StandardCharsets;
import java.util.*;

/** Record batches by Apache Kafka's own classes: "write CODEC" prints a batch as hex; "read HEX" prints its records. */
public class BatchesFromKafka {
    static Compression codec(String name) {
        switch (name) {
            case "gzip": return Compression.gzip().build();
            case "snappy": return Compression.snappy().build();
            case "lz4": return Compression.lz4().build();
            case "zstd": return Compression.zstd().build();
            default: return Compression.NONE;
        }
    }

    static String write(String name) {
        List<SimpleRecord> records = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            byte[] key = i % 3 == 0 ? null : ("key-" + i).getBytes(StandardCharsets.UTF_8);
            byte[] value = i % 7 == 0 ? null : ("value " + "x".repeat(i * 3)).getBytes(StandardCharsets.UTF_8);
            Header[] headers = i % 5 == 0
                ? new Header[] {new RecordHeader("trace-é", new byte[] {(byte) i, 2}), new RecordHeader("none", null)}
                : new Header[0];
            records.add(new SimpleRecord(1700000000000L + i * 1000L - (i % 4) * 5000L, key, value, headers));
        }
        MemoryRecords batch = MemoryRecords.withTransactionalRecords(RecordBatch.MAGIC_VALUE_V2, 1000L, codec(name),
            77L, (short) 3, 12, 5, records.toArray(new SimpleRecord[0]));
        ByteBuffer buffer = batch.buffer().duplicate();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    static String hex(ByteBuffer buffer) {
        if (buffer == null) return "null";
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    static String read(String text) {
        StringBuilder out = new StringBuilder();
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HexFormat.of().parseHex(text)));
        for (MutableRecordBatch batch : records.batches()) {
            batch.ensureValid();
            out.append("batch ").append(batch.baseOffset()).append(' ').append(batch.lastOffset()).append(' ')
                .append(batch.maxTimestamp()).append(' ').append(batch.producerId()).append(' ')
                .append(batch.producerEpoch()).append(' ').append(batch.baseSequence()).append(' ')
                .append(batch.isTransactional()).append(' ').append(batch.compressionType().name).append(';');
            for (org.apache.kafka.common.record.Record record : batch) {
                out.append(record.offset()).append(' ').append(record.timestamp()).append(' ')
                    .append(hex(record.key())).append(' ').append(hex(record.value()));
                for (Header header : record.headers())
                    out.append(' ').append(header.key()).append('=')
                        .append(header.value() == null ? "null" : HexFormat.of().formatHex(header.value()));
                out.append(';');
            }
        }
        return out.toString();
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ", 2);
            try {
                out.println(words[0].equals("write") ? write(words[1]) : read(words[1]));
            } catch (Exception e) {
                out.println("error " + e);
            }
        }
    }
}
