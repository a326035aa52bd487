package kohort.interop;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;

/**
 * Kafka's Java clients at work, one scenario a sub-command: prints what it found as a line of JSON, and exits with 1 on a surprise.
 * The sub-command "serve" runs scenarios one after the other: each line of input is a command line, as an array of JSON; each line of
 * output is {"found"} or {"surprise"}.
 */
public final class Interop {
    /** What a sub-command does. */
    interface Scenario {
        Object run(Options options) throws Exception;
    }

    private static final ObjectMapper JSON = new ObjectMapper();

    private static final Map<String, Scenario> SCENARIOS = new TreeMap<>(Map.ofEntries(
            Map.entry("produce", Records::produce),
            Map.entry("consume", Records::consume),
            Map.entry("positions", Positions::run),
            Map.entry("transactions", Transactions::run),
            Map.entry("group", Group::run),
            Map.entry("member", Member::run),
            Map.entry("share", Share::run),
            Map.entry("share-member", ShareMember::run),
            Map.entry("topics", Topics::run),
            Map.entry("transactions-admin", TransactionsAdmin::run),
            Map.entry("groups-admin", GroupsAdmin::run)));

    public static void main(String[] args) throws Exception {
        if (args.length == 1 && args[0].equals("serve")) {
            serve();
            return;
        }
        try {
            print(run(args));
        } catch (Exception | AssertionError e) {
            e.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    private static void serve() throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                Object found = run(JSON.readValue(line, String[].class));
                print(Map.of("found", found));
            } catch (Exception | AssertionError e) {
                var trace = new StringWriter();
                e.printStackTrace(new PrintWriter(trace, true));
                print(Map.of("surprise", trace.toString()));
            }
        }
    }

    private static Object run(String[] args) throws Exception {
        Scenario scenario = args.length == 0 ? null : SCENARIOS.get(args[0]);
        check(scenario != null, "usage: SCENARIO --bootstrap.servers HOST:PORT [--OPTION VALUE ...]; one of " + SCENARIOS.keySet());
        return scenario.run(new Options(args));
    }

    static void print(Object finding) throws Exception {
        System.out.println(JSON.writeValueAsString(finding));
        System.out.flush();
    }

    /** The simple class name of the error that an action ends with, looked up below the wrappers; "none" if it succeeds. */
    static String errorOf(Action action) {
        try {
            action.run();
            return "none";
        } catch (ExecutionException e) {
            return e.getCause().getClass().getSimpleName();
        } catch (Exception e) {
            return e.getClass().getSimpleName();
        }
    }

    interface Action {
        void run() throws Exception;
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }
}
