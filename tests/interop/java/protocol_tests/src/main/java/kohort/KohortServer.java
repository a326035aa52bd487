package kohort;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * {@code kohort serve} in a process of its own, with a directory that outlives its restarts.
 *
 * <p>The system properties {@code kohort.python} and {@code kohort.directory} say with which Python, and where.
 */
final class KohortServer {
    private static final String READY = "kohort ready on ";
    private static final long STOP_SECONDS = 20;

    private final List<String> settings = new ArrayList<>();
    private final Path directory;
    private Process process;
    private int port;

    KohortServer(int node, Map<String, String> properties) {
        try {
            directory = Files.createTempDirectory(Path.of(System.getProperty("kohort.directory")), "server");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        settings.add("--set=node.id=" + node);
        // Kafka tells members the same interval whether partitions move or not; Kohort does where its settings say so.
        settings.add("--set=group.consumer.moving.heartbeat.interval.ms="
            + properties.getOrDefault("group.consumer.heartbeat.interval.ms", "5000"));
        properties.forEach((key, value) -> settings.add("--set=" + key + "=" + value));
    }

    int port() {
        return port;
    }

    String bootstrap() {
        return "127.0.0.1:" + port;
    }

    void start() {
        List<String> command = new ArrayList<>(List.of(
            System.getProperty("kohort.python"), "-m", "kohort.cli", "serve",
            "--listen", bootstrap(), "--data-dir", directory.resolve("data").toString()));
        command.addAll(settings);
        File errors = directory.resolve("stderr.txt").toFile();
        try {
            process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.appendTo(errors)).start();
            process.getOutputStream().close();
            BufferedReader out = process.inputReader();
            for (String line = out.readLine(); line != null; line = out.readLine()) {
                if (line.startsWith(READY)) {
                    port = Integer.parseInt(line.substring(line.lastIndexOf(':') + 1));
                    return;
                }
            }
            throw new IllegalStateException("kohort serve did not start: " + Files.readString(errors.toPath()));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Stops it as SIGTERM does. */
    void stop() {
        process.destroy();
        try {
            if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
                kill();
                throw new IllegalStateException("kohort serve did not stop in " + STOP_SECONDS + " s");
            }
        } catch (InterruptedException error) {
            kill();
            throw new IllegalStateException(error);
        }
    }

    void kill() {
        process.destroyForcibly();
    }
}
