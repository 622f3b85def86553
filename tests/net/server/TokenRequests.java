import java.util.List;
import java.util.Map;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.AppConfigurationEntry.LoginModuleControlFlag;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule;
import org.apache.kafka.common.security.oauthbearer.internals.secured.HttpJwtRetriever;
import org.apache.kafka.common.security.oauthbearer.internals.secured.HttpRequestFormatter;

/**
 * Requests a token at each URL of the arguments, and again after a failure as Java's client does;
 * prints whether there was one.
 */
public class TokenRequests {
    public static void main(String[] urls) throws Exception {
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", String.join(",", urls));
        HttpRequestFormatter formatter = new HttpRequestFormatter() {
            @Override
            public String formatBody() {
                return "grant_type=client_credentials";
            }

            @Override
            public Map<String, String> formatHeaders() {
                return Map.of();
            }
        };
        AppConfigurationEntry module = new AppConfigurationEntry(
            OAuthBearerLoginModule.class.getName(), LoginModuleControlFlag.REQUIRED, Map.of());
        for (String url : urls) {
            HttpJwtRetriever retriever = new HttpJwtRetriever(formatter);
            retriever.configure(
                Map.of(
                    "sasl.oauthbearer.token.endpoint.url", url,
                    "sasl.login.retry.backoff.ms", 1L,
                    "sasl.login.retry.backoff.max.ms", 60_000L),
                "OAUTHBEARER",
                List.of(module));
            try {
                retriever.retrieve();
                System.out.println("issued");
            } catch (RuntimeException error) {
                System.out.println("failed");
            }
            retriever.close();
        }
    }
}
