// Submits the job on standard input: java Submit.java <job.json >result
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;

public class Submit {
    static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    static HttpResponse<byte[]> submit(byte[] job) throws Exception {
        String url = System.getenv().getOrDefault("PILOTFISH_URL", "http://127.0.0.1:8080");
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + "/v1/jobs"))
            .header("Content-Type", "application/json").POST(BodyPublishers.ofByteArray(job)).build();
        for (int attempt = 0; ; attempt++) {
            long wait = 1L << attempt;
            try {
                HttpResponse<byte[]> response = CLIENT.send(request, BodyHandlers.ofByteArray()); // fails if it was truncated
                long after = response.headers().firstValueAsLong("Retry-After").orElse(-1);
                boolean undone = after >= 0 || response.headers().firstValue("Job-Started").orElse("").matches("no|withdrawn");
                boolean refused = response.statusCode() == 429 || response.statusCode() == 503;
                if (attempt == 4 || !refused || !undone) {
                    return response;
                }
                wait = Math.max(wait, after);
            } catch (ConnectException refused) { // any other exception: the job may have run
                if (attempt == 4) {
                    throw refused;
                }
            }
            System.err.println("nothing was done; again in " + wait + " s");
            Thread.sleep(1000 * wait);
        }
    }

    public static void main(String[] args) throws Exception {
        HttpResponse<byte[]> response = submit(System.in.readAllBytes());
        (response.statusCode() == 200 ? System.out : System.err).write(response.body());
        System.exit(response.statusCode() == 200 ? 0 : 1);
    }
}
