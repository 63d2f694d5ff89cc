package dev.calve.client;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Set;

/** Sends requests to one server, and repeats those that are safe to repeat. */
final class Server {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String API = "/api/v3";
    private static final int TRIES = 5;
    private static final Duration FIRST_PAUSE = Duration.ofMillis(100);
    private static final Set<Integer> PASSING = Set.of(429, 502, 503, 504);

    private final HttpClient http = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(Duration.ofSeconds(10))
            .build();
    private final String url;
    private final String token;

    Server(String url, String token) {
        this.url = url.replaceAll("/+$", "");
        this.token = token;
    }

    /** Returns a path of the API, with each part escaped. */
    static String path(Object... parts) {
        StringBuilder path = new StringBuilder(API);
        for (Object part : parts) {
            path.append('/').append(URLEncoder.encode(part.toString(), StandardCharsets.UTF_8).replace("+", "%20"));
        }
        return path.toString();
    }

    JsonNode get(String place) {
        return ask("GET", place, null, null, true);
    }

    /** Sends a request; a repeatable one is sent again if there is no response. */
    JsonNode ask(String method, String place, String body, String type, boolean isRepeatable) {
        HttpRequest request = request(method, place, body, type);
        Duration pause = FIRST_PAUSE;
        for (int left = TRIES - 1; ; left--) {
            try {
                HttpResponse<String> answer = http.send(request, HttpResponse.BodyHandlers.ofString());
                if (left == 0 || !isRepeatable || !PASSING.contains(answer.statusCode())) {
                    return read(method + " " + place, answer);
                }
            } catch (IOException error) {
                if (left == 0 || !(isRepeatable || error instanceof ConnectException)) {
                    throw new CalveException("server_unreachable", url + " does not answer: " + error, error);
                }
            } catch (InterruptedException error) {
                throw interrupted(error);
            }
            sleep(pause);
            pause = pause.multipliedBy(2);
        }
    }

    static void sleep(Duration pause) {
        try {
            Thread.sleep(pause.toMillis());
        } catch (InterruptedException error) {
            throw interrupted(error);
        }
    }

    private HttpRequest request(String method, String place, String body, String type) {
        HttpRequest.Builder builder = HttpRequest.newBuilder(URI.create(url + place))
                .timeout(Duration.ofSeconds(30))
                .header("Accept", "application/json")
                .method(
                        method,
                        body == null
                                ? HttpRequest.BodyPublishers.noBody()
                                : HttpRequest.BodyPublishers.ofString(body));
        if (type != null) {
            builder.header("Content-Type", type);
        }
        if (token != null) {
            builder.header("Authorization", "Bearer " + token);
        }
        return builder.build();
    }

    private static JsonNode read(String place, HttpResponse<String> answer) {
        boolean isGood = answer.statusCode() / 100 == 2;
        JsonNode body;
        try {
            body = JSON.readTree(answer.body().isEmpty() ? "{}" : answer.body());
        } catch (JsonProcessingException error) {
            throw new CalveException(
                    answer.statusCode(), "server_error", place + ": the response is not JSON.", "Check the address.");
        }
        if (isGood) {
            return body;
        }
        String message = body.path("message").asText(body.path("detail").asText("no reason given"));
        throw new CalveException(
                answer.statusCode(),
                body.path("code").asText("server_error"),
                message,
                body.path("remedy").asText(""));
    }

    private static CalveException interrupted(InterruptedException error) {
        Thread.currentThread().interrupt();
        return new CalveException("interrupted", "Interrupted while waiting for the server.", error);
    }
}
