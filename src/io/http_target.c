/* http_target.c - the options of an HTTP client, checked once, in the form that libcurl wants.
 *
 * Holds: base_url names a scheme, a host, perhaps a port and a path, and nothing else; a target on
 * the loopback or on a unix socket never goes through a proxy. */
#include "io/http_target.h"

#include "base/buf.h"
#include "base/mem.h"
#include "io/http_text.h"
#include "io/tls.h"

#include <curl/curl.h>
#include <stdio.h>
#include <strings.h>

enum {
    MAX_HEADER = 64 * 1024,
    MAX_URL = 4096,
    DEFAULT_CONNECT_MS = 10000,
    DEFAULT_HEAD = 64 * 1024,
    US_PER_MS = 1000,
};

/* --- headers --- */

/* Framing and routing are the transport's; a caller who sets them makes another request of it. */
static bool is_reserved_header(const char *name)
{
    static const char *const reserved[] = { "Host",       "Content-Length", "Transfer-Encoding",
                                            "Connection", "Expect",         "Upgrade" };

    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
        if (strcasecmp(name, reserved[i]) == 0)
            return true;
    return false;
}

/* Room for the whole line at once, so that the buffer never moves and leaves a copy behind. */
static int append_line(struct curl_slist **list, const char *name, struct str value,
                       struct err *err)
{
    /* libcurl takes "Name;" for an empty value, and "Name:" for no header at all. */
    const char *between = value.len > 0 ? ": " : ";";
    size_t size = strlen(name) + strlen(between) + value.len + 1;
    char *line = mem_alloc(size);

    snprintf(line, size, "%s%s%.*s", name, between, (int)value.len, value.at);

    struct curl_slist *longer = curl_slist_append(*list, line);

    mem_free_secret(line, size);
    if (!longer)
        return err_set(err, ERR_SYSTEM, "libcurl is out of memory");
    *list = longer;
    return 0;
}

int http_target_add_header(struct curl_slist **list, const char *name, struct str value,
                           struct err *err)
{
    if (!name || !http_is_header_name(str_of(name)) || strlen(name) > MAX_HEADER ||
        is_reserved_header(name))
        return err_set(err, ERR_INVALID, "header %.64s: not a name to be sent", name ? name : "");
    if (!http_is_header_value(value) || value.len > MAX_HEADER)
        return err_set(err, ERR_INVALID, "header %.64s: not a value to be sent", name);
    return append_line(list, name, value, err);
}

void http_target_free_headers(struct curl_slist *list)
{
    for (struct curl_slist *line = list; line; line = line->next)
        explicit_bzero(line->data, strlen(line->data));
    curl_slist_free_all(list);
}

static int copy_headers(struct http_target *target, const struct http_client_options *options,
                        struct err *err)
{
    int result = 0;

    if (options->header_count > HTTP_MAX_HEADERS)
        return err_set(err, ERR_INVALID, "more than %d headers", HTTP_MAX_HEADERS);
    for (unsigned i = 0; result == 0 && i < options->header_count; i++)
        result = http_target_add_header(&target->headers, options->headers[i].name,
                                        str_of(options->headers[i].value), err);
    return result;
}

/* --- the URL --- */

struct url_parts {
    char *scheme, *host, *port, *path; /* libcurl's */
};

static void url_parts_done(struct url_parts *parts)
{
    curl_free(parts->scheme);
    curl_free(parts->host);
    curl_free(parts->port);
    curl_free(parts->path);
}

static bool has_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    bool has = curl_url_get(url, part, &text, 0) == CURLUE_OK;

    curl_free(text);
    return has;
}

static bool get_parts(CURLU *url, const char *text, struct url_parts *parts)
{
    return curl_url_set(url, CURLUPART_URL, text, CURLU_PATH_AS_IS) == CURLUE_OK &&
           !has_part(url, CURLUPART_USER) && !has_part(url, CURLUPART_PASSWORD) &&
           !has_part(url, CURLUPART_QUERY) && !has_part(url, CURLUPART_FRAGMENT) &&
           curl_url_get(url, CURLUPART_SCHEME, &parts->scheme, 0) == CURLUE_OK &&
           curl_url_get(url, CURLUPART_HOST, &parts->host, 0) == CURLUE_OK &&
           curl_url_get(url, CURLUPART_PORT, &parts->port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
           curl_url_get(url, CURLUPART_PATH, &parts->path, 0) == CURLUE_OK &&
           http_is_path(str_of(parts->path));
}

static bool is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "[::1]") == 0;
}

static char *print(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *print(const char *format, ...)
{
    struct buf text;
    va_list args;

    buf_init(&text, (size_t)4 * MAX_URL);
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    buf_add(&text, "", 0);
    return text.data;
}

/* libcurl checks the certificate against the URL's host. So the URL names the server name, the
 * connection goes to the real host, and the Host header stays what it was. */
static int set_server_name(struct http_target *target, const struct url_parts *parts,
                           const char *name, struct err *err)
{
    auto_free char *route = print("%s:%s:%s:%s", name, parts->port, parts->host, parts->port);

    target->connect_to = curl_slist_append(NULL, route);
    target->host_header = print("Host: %s:%s", parts->host, parts->port);
    if (!target->connect_to)
        return err_set(err, ERR_SYSTEM, "libcurl is out of memory");
    return 0;
}

static bool is_host_name(const char *name)
{
    size_t length =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._");

    return length > 0 && length < 256 && name[length] == '\0';
}

static int set_address(struct http_target *target, const struct http_client_options *options,
                       const struct url_parts *parts, struct err *err)
{
    const char *name = options->server_name;
    struct str path = str_of(parts->path);
    int result = 0;

    target->https = strcmp(parts->scheme, "https") == 0;
    if (!target->https && strcmp(parts->scheme, "http") != 0)
        return err_set(err, ERR_INVALID, "URL: only http and https");
    if (name && !is_host_name(name))
        return err_set(err, ERR_INVALID, "server name: not a host name");
    while (str_ends(path, STR("/")))
        path.len--;
    target->base_url = print("%s://%s:%s%.*s", parts->scheme, name ? name : parts->host,
                             parts->port, (int)path.len, path.at);
    target->use_proxy =
        options->proxy_from_environment && !options->unix_socket && !is_loopback(parts->host);
    if (name)
        result = set_server_name(target, parts, name, err);
    return result;
}

static int parse_url(struct http_target *target, const struct http_client_options *options,
                     struct err *err)
{
    struct url_parts parts = { .scheme = NULL };
    CURLU *url = curl_url();
    int result;

    if (!url || !options->base_url || strlen(options->base_url) > MAX_URL ||
        !get_parts(url, options->base_url, &parts))
        result = err_set(err, ERR_INVALID, "not a base URL: scheme, host, port and path, no more");
    else
        result = set_address(target, options, &parts, err);
    url_parts_done(&parts);
    curl_url_cleanup(url);
    return result;
}

/* --- TLS --- */

static char *copy_or_null(const char *text)
{
    return text ? mem_strdup(text) : NULL;
}

static int take_tls(struct http_target *target, const struct tls_source *source, struct err *err)
{
    struct tls_material *fresh;
    int result = tls_material_new(source, &fresh, err);

    if (result < 0)
        return result;
    tls_material_unref(target->tls);
    target->tls = fresh;
    return 0;
}

static void take_file_names(struct http_target *target, const struct tls_source *source)
{
    mem_free(target->ca_file);
    mem_free(target->cert_file);
    mem_free(target->key_file);
    target->ca_file = copy_or_null(source->ca_file);
    target->cert_file = copy_or_null(source->cert_file);
    target->key_file = copy_or_null(source->key_file);
}

int http_target_reload_tls(struct http_target *target, const struct tls_source *tls,
                           struct err *err)
{
    /* What came from memory is taken from the material in use. */
    struct tls_source again = {
        .ca_file = target->ca_file,
        .cert_file = target->cert_file,
        .key_file = target->key_file,
        .ca = tls_material_ca(target->tls),
        .cert = tls_material_cert(target->tls),
        .key = tls_material_key(target->tls),
    };
    int result = take_tls(target, tls ? tls : &again, err);

    if (result == 0 && tls)
        take_file_names(target, tls);
    return result;
}

/* --- all together --- */

int http_target_init(struct http_target *target, struct loop *loop,
                     const struct http_client_options *options, struct err *err)
{
    *target = (struct http_target){
        .loop = loop,
        .unix_socket = copy_or_null(options->unix_socket),
        .user_agent = mem_strdup(options->user_agent ? options->user_agent : "slinc"),
        .bearer_token = options->bearer_token,
        .bearer_context = options->bearer_context,
        .insecure = options->insecure,
        .http1_only = options->http1_only,
        .gzip = options->gzip,
        .connect_timeout_ms = options->connect_timeout_us > 0
                                  ? (long)((options->connect_timeout_us - 1) / US_PER_MS + 1)
                                  : DEFAULT_CONNECT_MS,
        .max_head = options->max_head ? options->max_head : DEFAULT_HEAD,
    };
    take_file_names(target, &options->tls);

    int result = take_tls(target, &options->tls, err);

    if (result == 0)
        result = parse_url(target, options, err);
    if (result == 0)
        result = copy_headers(target, options, err);
    if (result == 0 && !http_is_header_value(str_of(target->user_agent)))
        result = err_set(err, ERR_INVALID, "not a user agent");
    return result;
}

void http_target_done(struct http_target *target)
{
    mem_free(target->base_url);
    mem_free(target->host_header);
    mem_free(target->unix_socket);
    mem_free(target->user_agent);
    curl_slist_free_all(target->connect_to);
    http_target_free_headers(target->headers);
    tls_material_unref(target->tls);
    take_file_names(target, &(struct tls_source){ .ca_file = NULL });
}
