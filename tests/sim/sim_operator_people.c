/* sim_operator_people.c - the people of the operator scenario: they make, change and delete custom
 * resources, the Secrets and ConfigMaps that these refer to, have objects of their own under
 * colliding names, and meddle with children. */
#include "operator/names.h"
#include "sim_operator.h"

const char *const operator_namespaces[OPERATOR_NAMESPACES] = { "n1", "n2" };

/* The second LoginSet wants a Service and a Deployment by the names of those of RestApi "a". */
const struct operator_resource operator_resources[OPERATOR_RESOURCES] = {
    { "controllers", "Controller", { "a", "b" } },
    { "restapis", "RestApi", { "a", "b" } },
    { "accountings", "Accounting", { "a", "b" } },
    { "loginsets", "LoginSet", { "a", "a-restapi" } },
    { "tokens", "Token", { "a", "b" } },
    { "nodesets", "NodeSet", { "a", "b" } },
};

/* One deed: what it is done to is drawn before, so that every deed reads as a sentence. */
struct deed {
    struct operator_scene *scene;
    const char *ns;
    const struct operator_resource *resource;
    const char *name; /* of the custom resource */
    unsigned value;
    bool yes;
    char path[300], body[1200];
};

/* What they write is well-formed: the server takes it, or it is there already, or gone. */
static void call(struct deed *deed, const char *method)
{
    int status = world_call(deed->scene->world, "people", method, deed->path,
                            *deed->body ? deed->body : NULL);

    if (status >= 300 && status != 404 && status != 409)
        world_break(deed->scene->world, "people's %s %s is refused with %d", method, deed->path,
                    status);
}

#define AT(...)   (void)snprintf(deed->path, sizeof(deed->path), __VA_ARGS__)
#define WITH(...) (void)snprintf(deed->body, sizeof(deed->body), __VA_ARGS__)
#define CUSTOM    "/apis/" OPERATOR_GROUP "/" OPERATOR_VERSION "/namespaces/%s/%s"
#define CORE      "/api/v1/namespaces/%s/%s"

/* ---- custom resources ---- */

static void write_controller(const struct deed *deed, char spec[1000])
{
    (void)snprintf(
        spec, 1000,
        "{\"slurmKeyRef\":{\"name\":\"keys\",\"key\":\"k\"},"
        "\"jwtKeyRef\":{\"name\":\"jwt\",\"key\":\"k\"},"
        "\"external\":%s,\"externalConfig\":{\"host\":\"head\",\"port\":6817},"
        "\"ha\":{\"enabled\":%s,\"backups\":1},"
        "\"persistence\":{\"existingClaim\":\"state\"},\"slurmctld\":{\"image\":\"c:%u\"},"
        "\"accountingRef\":{\"name\":\"%s\"},\"configFileRefs\":[{\"name\":\"files\"}],"
        "\"prologScriptRefs\":[{\"name\":\"scripts\"}],"
        "\"extraConf\":\"MaxJobCount=%u\"}",
        deed->value % 10 == 0 ? "true" : "false", deed->yes ? "false" : "true", deed->value % 3,
        deed->yes ? "a" : "b", deed->value);
}

static void write_restapi(const struct deed *deed, char spec[1000])
{
    (void)snprintf(spec, 1000,
                   "{\"controllerRef\":{\"name\":\"%s\"},\"replicas\":%u,"
                   "\"slurmrestd\":{\"image\":\"r:%u\",\"securityContext\":{\"fsGroup\":1}},"
                   "\"service\":{\"port\":%u,\"spec\":{\"trafficDistribution\":\"x\"}},"
                   "\"template\":{\"metadata\":{\"annotations\":{\"t\":\"%u\"}}}}",
                   deed->yes ? "a" : "b", 1 + deed->value % 3, deed->value % 4,
                   6820 + deed->value % 2, deed->value % 2);
}

static void write_accounting(const struct deed *deed, char spec[1000])
{
    (void)snprintf(spec, 1000,
                   "{\"slurmKeyRef\":{\"name\":\"keys\",\"key\":\"k\"},"
                   "\"jwtKeyRef\":{\"name\":\"jwt\",\"key\":\"k\"},\"external\":%s,"
                   "\"externalConfig\":{\"host\":\"db.example\",\"port\":1},"
                   "\"storageConfig\":{\"host\":\"maria\","
                   "\"passwordKeyRef\":{\"name\":\"db\",\"key\":\"k\"}},"
                   "\"slurmdbd\":{\"image\":\"d:%u\"},\"extraConf\":\"PurgeJobAfter=%u\"}",
                   deed->value % 10 == 0 ? "true" : "false", deed->value % 3, deed->value);
}

static void write_loginset(const struct deed *deed, char spec[1000])
{
    (void)snprintf(spec, 1000,
                   "{\"controllerRef\":{\"name\":\"%s\"},\"replicas\":%u,"
                   "\"sssdConfRef\":{\"name\":\"sssd\",\"key\":\"k\"},"
                   "\"login\":{\"image\":\"l:%u\"},\"extraSshdConfig\":\"MaxSessions %u\"}",
                   deed->yes ? "a" : "b", 1 + deed->value % 2, deed->value % 3, deed->value);
}

static void write_token(const struct deed *deed, char spec[1000])
{
    (void)snprintf(spec, 1000,
                   "{\"jwtKeyRef\":{\"name\":\"jwt\",\"key\":\"k\"},\"username\":\"%s\","
                   "\"lifetime\":\"%uh\",\"refresh\":%s}",
                   deed->value % 5 == 0 ? "bob" : "alice", 24 + deed->value % 3,
                   deed->yes ? "true" : "false");
}

static void write_nodeset(const struct deed *deed, char spec[1000])
{
    (void)snprintf(spec, 1000,
                   "{\"controllerRef\":{\"name\":\"%s\"},"
                   "\"partition\":{\"enabled\":%s,\"config\":\"MaxNodes=%u\"}}",
                   deed->yes ? "a" : "b", deed->value % 2 ? "true" : "false", deed->value);
}

static void write_spec(const struct deed *deed, char spec[1000])
{
    static void (*const writers[OPERATOR_RESOURCES])(const struct deed *, char[1000]) = {
        write_controller, write_restapi, write_accounting,
        write_loginset,   write_token,   write_nodeset,
    };

    writers[deed->resource - operator_resources](deed, spec);
}

static void make_resource(struct deed *deed)
{
    char spec[1000];

    write_spec(deed, spec);
    AT(CUSTOM, deed->ns, deed->resource->plural);
    WITH("{\"apiVersion\":\"" OPERATOR_GROUP "/" OPERATOR_VERSION "\",\"kind\":\"%s\","
         "\"metadata\":{\"name\":\"%s\"}%s%s}",
         deed->resource->kind, deed->name,
         deed->value == 77 ? "" : ",\"spec\":", deed->value == 77 ? "" : spec);
    call(deed, "POST");
}

static void edit_resource(struct deed *deed)
{
    char spec[1000];

    write_spec(deed, spec);
    AT(CUSTOM "/%s", deed->ns, deed->resource->plural, deed->name);
    WITH("{\"spec\":%s}", spec);
    call(deed, "PATCH");
}

static void annotate_resource(struct deed *deed)
{
    AT(CUSTOM "/%s", deed->ns, deed->resource->plural, deed->name);
    WITH("{\"metadata\":{\"%s\":{\"note-%u\":%s}}}", deed->value % 2 ? "labels" : "annotations",
         deed->value % 3, deed->yes ? "\"x\"" : "null");
    call(deed, "PATCH");
}

static void delete_resource(struct deed *deed)
{
    AT(CUSTOM "/%s", deed->ns, deed->resource->plural, deed->name);
    call(deed, "DELETE");
}

static void remake_resource(struct deed *deed)
{
    delete_resource(deed);
    make_resource(deed);
}

/* ---- what custom resources refer to ---- */

static const char *secret_of(const struct deed *deed)
{
    static const char *const names[] = { "keys", "jwt", "db", "sssd" };

    return names[deed->value % 4];
}

/* The value is a key of three bytes, as base64. */
static void make_secret(struct deed *deed)
{
    AT(CORE, deed->ns, "secrets");
    WITH("{\"metadata\":{\"name\":\"%s\"},\"data\":{\"k\":\"a2V5\"}}", secret_of(deed));
    call(deed, "POST");
}

static void edit_secret(struct deed *deed)
{
    AT(CORE "/%s", deed->ns, "secrets", secret_of(deed));
    WITH("{\"data\":{\"k\":\"a2V%c\"}}", (char)('A' + deed->value % 20));
    call(deed, "PATCH");
}

static void delete_secret(struct deed *deed)
{
    AT(CORE "/%s", deed->ns, "secrets", secret_of(deed));
    call(deed, "DELETE");
}

static void make_files(struct deed *deed)
{
    AT(CORE, deed->ns, "configmaps");
    WITH("{\"metadata\":{\"name\":\"%s\"},\"data\":{\"%s\":\"text %u\"}}",
         deed->yes ? "scripts" : "files", deed->value % 2 ? "cgroup.conf" : "00-x", deed->value);
    call(deed, "POST");
}

static void edit_files(struct deed *deed)
{
    AT(CORE "/%s", deed->ns, "configmaps", deed->yes ? "scripts" : "files");
    WITH("{\"data\":{\"%s\":%s}}", deed->value % 2 ? "cgroup.conf" : "01-y",
         deed->value % 3 ? "\"more\"" : "null");
    call(deed, "PATCH");
}

static void delete_files(struct deed *deed)
{
    AT(CORE "/%s", deed->ns, "configmaps", deed->yes ? "scripts" : "files");
    call(deed, "DELETE");
}

/* ---- children ---- */

static const struct child {
    const char *api, *plural, *suffix;
    const char *edit; /* of something that the operator owns */
} children[] = {
    { "/api/v1", "services", "-controller", "{\"spec\":{\"selector\":{\"more\":\"x\"}}}" },
    { "/api/v1", "services", "-controller-internal", "{\"spec\":{\"ports\":[]}}" },
    { "/api/v1", "services", "-restapi", "{\"spec\":{\"type\":\"NodePort\"}}" },
    { "/api/v1", "services", "-accounting", "{\"spec\":{\"selector\":null}}" },
    { "/api/v1", "services", "", "{\"metadata\":{\"labels\":{\"" LABEL_NAME "\":null}}}" },
    { "/api/v1", "configmaps", "-config", "{\"data\":{\"slurm.conf\":\"meddled\"}}" },
    { "/api/v1", "configmaps", "-ssh-config", "{\"data\":{\"sshd_config\":null}}" },
    { "/api/v1", "secrets", "-accounting", "{\"data\":{\"slurmdbd.conf\":\"bm8=\"}}" },
    { "/api/v1", "secrets", "-jwt-alice", "{\"metadata\":{\"labels\":{\"more\":\"x\"}}}" },
    { "/api/v1", "secrets", "-ssh-host-keys", "{\"metadata\":{\"labels\":{\"more\":\"x\"}}}" },
    { "/apis/apps/v1", "deployments", "-restapi", "{\"spec\":{\"replicas\":7}}" },
    { "/apis/apps/v1", "deployments", "",
      "{\"spec\":{\"template\":{\"spec\":{\"hostNetwork\":true}}}}" },
    { "/apis/apps/v1", "statefulsets", "-controller", "{\"spec\":{\"replicas\":0}}" },
    { "/apis/apps/v1", "statefulsets", "-accounting",
      "{\"spec\":{\"template\":{\"metadata\":{\"labels\":null}}}}" },
};

enum { CHILDREN = sizeof(children) / sizeof(children[0]) };

static const struct child *child_of(const struct deed *deed)
{
    return &children[deed->value % CHILDREN];
}

static void at_child(struct deed *deed)
{
    const struct child *child = child_of(deed);

    AT("%s/namespaces/%s/%s/%s%s", child->api, deed->ns, child->plural, deed->name, child->suffix);
}

static void edit_child(struct deed *deed)
{
    at_child(deed);
    WITH("%s", child_of(deed)->edit);
    call(deed, "PATCH");
}

static void delete_child(struct deed *deed)
{
    at_child(deed);
    call(deed, "DELETE");
}

/* Theirs from now on: it must survive whatever the operator writes. */
static void add_foreign(struct deed *deed)
{
    at_child(deed);
    if (str_starts(str_of(child_of(deed)->edit), STR("{\"data\"")))
        WITH("{\"data\":{\"foreign-%u\":\"eA==\"}}", deed->value % 3);
    else
        WITH("{\"metadata\":{\"%s\":{\"foreign-%u\":\"x\"}}}", deed->yes ? "labels" : "annotations",
             deed->value % 3);
    call(deed, "PATCH");
}

static void disown_child(struct deed *deed)
{
    at_child(deed);
    WITH("{\"metadata\":{\"ownerReferences\":null}}");
    call(deed, "PATCH");
}

static const char *others_uid(const struct deed *deed)
{
    return json_str(json_at(api_store_find(deed->scene->world->store, "configmaps", deed->ns,
                                           "other-owner"),
                            "metadata", "uid"))
        .at;
}

/* An object under the name of a child: controlled by an object of theirs, or by none. */
static void make_own(struct deed *deed)
{
    const struct child *child = child_of(deed);
    char owners[300] = "";

    AT("%s/namespaces/%s/%s", child->api, deed->ns, child->plural);
    if (deed->yes)
        (void)snprintf(owners, sizeof(owners),
                       ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                       "\"name\":\"other-owner\",\"uid\":\"%s\",\"controller\":true}]",
                       others_uid(deed));
    WITH("{\"metadata\":{\"name\":\"%s%s\",\"annotations\":{\"foreign-own\":\"x\"}%s},"
         "\"spec\":{\"serviceName\":\"%s-controller\"}}",
         deed->name, child->suffix, owners, deed->name);
    if (strcmp(child->plural, "configmaps") == 0 || strcmp(child->plural, "secrets") == 0)
        WITH("{\"metadata\":{\"name\":\"%s%s\"%s},\"data\":{\"foreign-own\":\"eA==\"}}", deed->name,
             child->suffix, owners);
    call(deed, "POST");
}

/* At the moment at which the operator makes its own. */
static void replace_child(struct deed *deed)
{
    delete_child(deed);
    make_own(deed);
}

static void forget_history(struct deed *deed)
{
    world_forget_history(deed->scene->world);
}

static const struct {
    void (*act)(struct deed *deed);
    unsigned weight;
} deeds[OPERATOR_DEEDS] = {
    [DEED_MAKE] = { make_resource, 30 },         [DEED_EDIT] = { edit_resource, 20 },
    [DEED_ANNOTATE] = { annotate_resource, 8 },  [DEED_DELETE] = { delete_resource, 5 },
    [DEED_REMAKE] = { remake_resource, 4 },      [DEED_MAKE_SECRET] = { make_secret, 14 },
    [DEED_EDIT_SECRET] = { edit_secret, 6 },     [DEED_DELETE_SECRET] = { delete_secret, 3 },
    [DEED_MAKE_FILES] = { make_files, 6 },       [DEED_EDIT_FILES] = { edit_files, 6 },
    [DEED_DELETE_FILES] = { delete_files, 2 },   [DEED_EDIT_CHILD] = { edit_child, 12 },
    [DEED_DELETE_CHILD] = { delete_child, 8 },   [DEED_ADD_FOREIGN] = { add_foreign, 12 },
    [DEED_DISOWN_CHILD] = { disown_child, 4 },   [DEED_MAKE_OWN] = { make_own, 4 },
    [DEED_REPLACE_CHILD] = { replace_child, 4 }, [DEED_FORGET_HISTORY] = { forget_history, 3 },
};

void operator_people_do(struct operator_scene *scene, enum operator_deed what, const char *plural,
                        const char *name, unsigned value, bool yes)
{
    struct deed deed = {
        .scene = scene, .ns = operator_namespaces[0], .name = name, .value = value, .yes = yes
    };

    for (unsigned i = 0; i < OPERATOR_RESOURCES; i++)
        if (plural && strcmp(operator_resources[i].plural, plural) == 0)
            deed.resource = &operator_resources[i];
    deeds[what].act(&deed);
}

static void act(struct operator_scene *scene)
{
    struct rand *rand = &scene->world->rand;
    struct deed deed = { .scene = scene };
    size_t chosen = world_choose(scene->world, &deeds[0].weight, sizeof(deeds[0]), OPERATOR_DEEDS);

    deed.ns = operator_namespaces[rand_below(rand, OPERATOR_NAMESPACES)];
    deed.resource = &operator_resources[rand_below(rand, OPERATOR_RESOURCES)];
    deed.name = deed.resource->names[rand_below(rand, 2)];
    deed.value = (unsigned)rand_below(rand, 100);
    deed.yes = rand_chance(rand, 700);
    deeds[chosen].act(&deed);
}

/* They come in bursts: what is done while our process is busy with the same thing is what it could
 * miss. */
static void on_people(void *context)
{
    struct operator_scene *scene = context;
    struct rand *rand = &scene->world->rand;

    act(scene);
    loop_timer_start(scene->world->loop, &scene->people,
                     rand_chance(rand, 600) ? rand_range(rand, 0, 15000)
                                            : rand_range(rand, 20000, 4000000),
                     on_people, scene);
}

static void on_last_burst(void *context)
{
    struct operator_scene *scene = context;
    struct rand *rand = &scene->world->rand;

    act(scene);
    if (rand_chance(rand, 900))
        loop_timer_start(scene->world->loop, &scene->people, rand_range(rand, 0, 15000),
                         on_last_burst, scene);
}

void operator_people_end(struct operator_scene *scene)
{
    loop_timer_start(scene->world->loop, &scene->people, 0, on_last_burst, scene);
}

static void make_namespace(struct operator_scene *scene, const char *name)
{
    char body[100];

    (void)snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"}}", name);
    (void)world_call(scene->world, "people", "POST", "/api/v1/namespaces", body);
}

void operator_people_prepare(struct operator_scene *scene)
{
    make_namespace(scene, "system");
    for (unsigned i = 0; i < OPERATOR_NAMESPACES; i++) {
        char path[100];

        make_namespace(scene, operator_namespaces[i]);
        (void)snprintf(path, sizeof(path), CORE, operator_namespaces[i], "configmaps");
        (void)world_call(scene->world, "people", "POST", path,
                         "{\"metadata\":{\"name\":\"other-owner\"}}");
    }
}

void operator_people_start(struct operator_scene *scene)
{
    for (unsigned i = 0; i < 60; i++)
        act(scene);
    loop_timer_start(scene->world->loop, &scene->people, 1000000, on_people, scene);
}
