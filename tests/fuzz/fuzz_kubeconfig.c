/* fuzz_kubeconfig.c - any kubeconfig is refused with a reason, or gives a configuration that holds
 * together: a server to go to, nothing that could break a header or a path, no token over plain
 * http, and the same result when asked for its own context by name. */
#include "kube/config.h"

#include "io/http_text.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_text(const char *text)
{
    must(!text || http_is_header_value(str_of(text)));
}

static void check(const struct kube_config *config)
{
    must(config->server && config->ns && config->context);
    must(str_starts(str_of(config->server), STR("https://")) ||
         str_starts(str_of(config->server), STR("http://")));
    must(!strchr(config->server, '@'));
    check_text(config->server);
    check_text(config->ns);
    check_text(config->server_name);
    check_text(config->ca_file);
    check_text(config->token_file);
    must(!config->token_file || config->token_file[0] == '/');
    must(!(config->insecure && (config->ca.at || config->ca_file)));
    must((config->cert.at || config->cert_file) == (config->key.at || config->key_file));
    must(http_is_header_value(kube_config_token(config)));
    if (config->token.at || config->token_file)
        must(str_starts(str_of(config->server), STR("https://")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kube_config_file file = { .text = { (const char *)data, size }, .path = "/k/config" };
    struct kube_config *config = NULL, *again = NULL;
    struct err err = { 0 };

    if (kube_config_resolve(&file, 1, NULL, &config, &err) < 0) {
        must(!config);
        must(err.class == ERR_INVALID || err.class == ERR_TOO_BIG || err.class == ERR_NOT_FOUND);
        must(err.text[0] != '\0');
        return 0;
    }
    check(config);
    if (config->context[0] && kube_config_resolve(&file, 1, config->context, &again, NULL) == 0)
        must(strcmp(config->server, again->server) == 0 && strcmp(config->ns, again->ns) == 0);
    kube_config_free(again);
    kube_config_free(config);
    return 0;
}
