// Runs Kafka's command line tools one after the other in this JVM: a call is a line of JSON on standard input
// ({"main": class, "arguments": [...], "stdin": text, "seconds": limit}), its result a line on standard output
// ({"exit": code, "out": text, "err": text}). Where a tool would exit, its thread stops; its shutdown hooks run before
// the result is printed, as at the end of a JVM: a verifiable producer waits for the rest of its records there.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.common.utils.internals.Exit;

public final class Tools {
    private static final int TIMED_OUT = 124;
    private static final long HOOK_MS = 30_000;
    private static final List<Runnable> HOOKS = new ArrayList<>();
    private static volatile CompletableFuture<Integer> ended = new CompletableFuture<>();

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        PrintStream results = System.out;
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Exit.setExitProcedure((code, message) -> exit(code, message));
        Exit.setHaltProcedure((code, message) -> exit(code, message));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            results.println(json.writeValueAsString(run(json.readTree(line))));
            results.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static void exit(int code, String message) {
        if (message != null) {
            System.err.println(message);
        }
        ended.complete(code);
        new CompletableFuture<Void>().join(); // a tool that exits goes no further
    }

    private static Map<String, Object> run(JsonNode call) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        System.setIn(new ByteArrayInputStream(call.get("stdin").asText().getBytes(StandardCharsets.UTF_8)));
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        List<String> words = new ArrayList<>();
        call.get("arguments").forEach(word -> words.add(word.asText()));
        CompletableFuture<Integer> code = new CompletableFuture<>();
        ended = code;
        Set<Thread> before = shutdownHooks();
        Thread thread = new Thread(() -> code.complete(code(call.get("main").asText(), words)), "tool");
        thread.setDaemon(true);
        thread.start();
        int exit;
        try {
            exit = code.get(call.get("seconds").asLong(), TimeUnit.SECONDS);
        } catch (TimeoutException late) {
            exit = TIMED_OUT;
        }
        HOOKS.forEach(Runnable::run);
        HOOKS.clear();
        runShutdownHooks(before);
        thread.interrupt();
        return Map.of(
            "exit", exit,
            "out", out.toString(StandardCharsets.UTF_8),
            "err", err.toString(StandardCharsets.UTF_8));
    }

    @SuppressWarnings("unchecked")
    private static Set<Thread> shutdownHooks() throws ReflectiveOperationException {
        Field hooks = Class.forName("java.lang.ApplicationShutdownHooks").getDeclaredField("hooks");
        hooks.setAccessible(true);
        return new HashSet<>(((Map<Thread, Thread>) hooks.get(null)).keySet());
    }

    /** Runs the hooks that a tool has added to the JVM itself. */
    private static void runShutdownHooks(Set<Thread> before) throws Exception {
        for (Thread hook : shutdownHooks()) {
            if (!before.contains(hook) && Runtime.getRuntime().removeShutdownHook(hook)) {
                hook.setDaemon(true);
                hook.start();
                hook.join(HOOK_MS);
            }
        }
    }

    private static int code(String main, List<String> words) {
        try {
            Class.forName(main).getMethod("main", String[].class).invoke(null, (Object) words.toArray(String[]::new));
            return 0;
        } catch (InvocationTargetException thrown) {
            System.err.println("Exception in thread \"main\" " + thrown.getCause());
            return 1;
        } catch (ReflectiveOperationException unknown) {
            System.err.println(unknown);
            return 127;
        }
    }
}
