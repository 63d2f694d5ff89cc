package dev.calve.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The client against a server that says what a test wants. */
class CalveClientTest {
    private static final String LOST = "lost";

    private final List<String> answers = new ArrayList<>();
    private final List<String> asked = new ArrayList<>();
    private HttpServer server;
    private CalveClient client;

    @BeforeEach
    void serve() throws Exception {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
            asked.add(exchange.getRequestMethod() + " " + exchange.getRequestURI() + " "
                    + exchange.getRequestHeaders().getFirst("Authorization") + " " + body);
            String answer = answers.size() > 1 ? answers.remove(0) : answers.get(0);
            if (answer.equals(LOST)) {
                exchange.close();
                return;
            }
            byte[] text = answer.substring(4).getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(Integer.parseInt(answer.substring(0, 3)), text.length == 0 ? -1 : text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
        });
        server.start();
        client = new CalveClient("http://127.0.0.1:" + server.getAddress().getPort() + "/", "calve_abc");
    }

    @AfterEach
    void end() {
        server.stop(0);
    }

    @Test
    void aLostAnswerStartsNothingTwice() {
        answers.addAll(List.of(LOST, "503 {}", "200 {\"workflow_id\":\"a\",\"workflow_instance_id\":7,\"status\":\"CREATED\"}"));
        Instance started = client.start("a", Map.of("x", 1));
        assertEquals(7, started.instanceId());
        assertEquals(3, asked.size());
        assertEquals(asked.get(0), asked.get(2));
        assertTrue(asked.get(0).startsWith("POST /api/v3/workflows/a/versions/active/actions/start Bearer calve_abc"));
        assertTrue(asked.get(0).contains("\"run_params\":{\"x\":1}"));
    }

    @Test
    void aPushIsNotRepeated() {
        answers.addAll(List.of(LOST, "200 {}"));
        CalveException error = assertThrows(CalveException.class, () -> client.pushYaml("Workflow: {id: a}"));
        assertEquals("server_unreachable", error.code());
        assertEquals(0, error.status());
        assertEquals(1, asked.size());
    }

    @Test
    void aRefusalSaysWhatToDo() {
        answers.add("404 {\"status\":\"NOT_FOUND\",\"message\":\"There is no a.\",\"code\":\"workflow_missing\",\"remedy\":\"Push it.\"}");
        CalveException error = assertThrows(CalveException.class, () -> client.instance("a b/c", 1));
        assertEquals("workflow_missing", error.code());
        assertEquals("Push it.", error.remedy());
        assertEquals("There is no a.", error.getMessage());
        assertEquals(404, error.status());
        assertTrue(asked.get(0).startsWith("GET /api/v3/workflows/a%20b%2Fc/instances/1 "));
    }

    @Test
    void aPageOfAnotherServerIsNoAnswer() {
        answers.add("200 <html>");
        assertEquals("server_error", assertThrows(CalveException.class, () -> client.workflow("a")).code());
    }

    @Test
    void awaitingEndsWithTheInstanceOrTheTime() {
        answers.addAll(List.of("200 {\"status\":\"IN_PROGRESS\"}", "200 {\"status\":\"SUCCEEDED\"}"));
        Instance started = new Instance("a", 1, 1, "CREATED", null);
        assertTrue(client.await(started, Duration.ofSeconds(30)).hasSucceeded());
        answers.set(0, "200 {\"status\":\"IN_PROGRESS\"}");
        assertFalse(client.await(started, Duration.ofMillis(1)).isOver());
    }

    @Test
    void actionsGoToTheirPlaces() {
        answers.add("200 ");
        client.stop("a", 1);
        client.kill("a", 2);
        client.delete("a");
        assertTrue(asked.get(0).startsWith("PUT /api/v3/workflows/a/instances/1/actions/stop "));
        assertTrue(asked.get(1).startsWith("PUT /api/v3/workflows/a/instances/2/actions/kill "));
        assertTrue(asked.get(2).startsWith("DELETE /api/v3/workflows/a "));
    }
}
