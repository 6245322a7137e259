/* takeover.c - what a switch from the release of another chart would do, read from what Helm says.
 */
#include "cli/takeover.h"

#include "cli/text.h"
#include "codec/patch.h"

enum { MAX_RELEASE = 64 << 20, MAX_MANIFEST = 8 << 20, MAX_OBJECTS = 2048, MAX_VALUES = 1 << 20 };

#define LOCAL "localhost/"
#define GROUP "slinky.slurm.net/"

/* ---- a release ---- */

static const struct yaml_limits limits = { .max_bytes = MAX_MANIFEST,
                                           .max_documents = MAX_OBJECTS,
                                           .max_values = MAX_VALUES };

static int read_hooks(const struct json *root, struct yaml_docs *ret_docs, struct err *err)
{
    struct json_iter iter = json_iter(json_get(root, "hooks"));
    auto_buf struct buf all = { .max = MAX_MANIFEST };
    const struct json *hook;

    while (json_next_item(&iter, &hook))
        buf_printf(&all, "---\n" STR_FMT "\n", STR_ARG(json_str(json_get(hook, "manifest"))));
    return yaml_parse(buf_str(&all), &limits, ret_docs, err);
}

int takeover_read(struct str text, struct takeover_release *ret_release, struct err *err)
{
    struct takeover_release release = { .doc = NULL };
    struct str manifest = STR("");
    int result = json_parse(text, MAX_RELEASE, &release.doc, err);

    if (result == 0)
        result = json_want_str(json_root(release.doc), "manifest", &manifest, err);
    if (result < 0)
        (void)err_wrap(err, "this is not what helm prints with -o json");
    else if ((result = yaml_parse(manifest, &limits, &release.objects, err)) == 0)
        result = read_hooks(json_root(release.doc), &release.hooks, err);
    if (result < 0)
        takeover_done(&release);
    else
        *ret_release = release;
    return result;
}

void takeover_done(struct takeover_release *release)
{
    yaml_docs_done(&release->objects);
    yaml_docs_done(&release->hooks);
    json_doc_free(release->doc);
    release->doc = NULL;
}

struct str takeover_namespace(const struct takeover_release *release)
{
    return json_str_or(json_get(json_root(release->doc), "namespace"), STR("default"));
}

static struct str kind_of(const struct json *object)
{
    return json_str(json_get(object, "kind"));
}

static struct str name_of(const struct json *object)
{
    return json_str(json_at(object, "metadata", "name"));
}

static const struct json *find_in(const struct yaml_docs *docs, struct str kind, struct str name)
{
    for (size_t i = 0; i < docs->count; i++) {
        const struct json *object = json_root(docs->docs[i]);

        if (str_eq(kind_of(object), kind) && str_eq(name_of(object), name))
            return object;
    }
    return NULL;
}

const struct json *takeover_find(const struct takeover_release *release, struct str kind,
                                 struct str name)
{
    return find_in(&release->objects, kind, name);
}

struct json_doc *takeover_changed(const struct json *live, const struct json *before,
                                  const struct json *after)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *patch = NULL;
    struct json_mut *difference = patch_merge_diff(build, before, after);

    if (!difference)
        return json_clone(live);
    patch = json_freeze(difference);
    return json_freeze(patch_merge_apply(build, live, json_root(patch)));
}

/* ---- the report ---- */

void takeover_tell(struct takeover_report *report, enum takeover_topic topic, const char *format,
                   ...)
{
    struct takeover_line *line = arena_alloc(report->arena, sizeof(*line));
    va_list args;

    va_start(args, format);
    line->text = text_plain_vprintf(report->arena, format, args);
    va_end(args);
    for (const struct takeover_line *one = report->first[topic]; one; one = one->next)
        if (str_is(str_of(one->text), line->text))
            return;
    if (report->last[topic])
        report->last[topic]->next = line;
    else
        report->first[topic] = line;
    report->last[topic] = line;
}

static const struct {
    const char *name, *mark, *title;
} topics[TAKEOVER_TOPICS] = {
    [TAKEOVER_REFUSED] = { "refused", "x", "refused: these stop the switch" },
    [TAKEOVER_ROLLS] = { "rolls", "!", "rolls: these pods are replaced" },
    [TAKEOVER_IGNORED] = { "ignored", "!", "ignored: the chart says of these values" },
    [TAKEOVER_IMAGES] = { "images", "!", "images: nodes must be able to pull these" },
    [TAKEOVER_CHANGES] = { "changes", " ", "changes: these replace no pod" },
    [TAKEOVER_UNKNOWN] = { "unknown", "-", "unknown: these could not be looked at" },
};

static void write_json(const struct takeover_report *report, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);

    json_put_text(build, root, "summary", report->summary);
    for (unsigned i = 0; i < TAKEOVER_TOPICS; i++) {
        struct json_mut *list = json_put_array(build, root, topics[i].name);

        for (const struct takeover_line *line = report->first[i]; line; line = line->next)
            json_push_str(build, list, str_of(line->text));
    }
    json_mut_write_pretty(root, out);
}

void takeover_write(const struct takeover_report *report, bool is_json, struct buf *out)
{
    if (is_json) {
        write_json(report, out);
        return;
    }
    buf_printf(out, "%s\n", report->summary);
    for (unsigned i = 0; i < TAKEOVER_TOPICS; i++) {
        if (report->first[i])
            buf_printf(out, "%s %s\n", topics[i].mark, topics[i].title);
        for (const struct takeover_line *line = report->first[i]; line; line = line->next)
            buf_printf(out, "        %s\n", line->text);
    }
    if (!report->first[TAKEOVER_REFUSED] && !report->first[TAKEOVER_ROLLS] &&
        !report->first[TAKEOVER_UNKNOWN])
        buf_add_text(out, "no pod of Slurm is replaced, and nothing is refused\n");
}

/* ---- images ---- */

struct images {
    struct takeover_report *report;
    const struct json *object; /* in which they stand */
};

/* The item of the other list with the same name. */
static const struct json *item_like(const struct json *list, const struct json *item)
{
    struct json_iter iter = json_iter(list);
    const struct json *one;

    while (json_next_item(&iter, &one))
        if (str_eq(json_str(json_get(one, "name")), json_str(json_get(item, "name"))))
            return one;
    return NULL;
}

/* Every member `image` below a value that is not what it was. */
static void find_images(const struct images *images, const struct json *was, const struct json *is)
{
    struct json_iter iter = json_iter(is);
    const struct json *value;
    struct str key;

    while (json_is_array(is) && json_next_item(&iter, &value))
        find_images(images, item_like(was, value), value);
    while (json_is_object(is) && json_next_member(&iter, &key, &value)) {
        struct str image = json_str(value), before = json_str(json_get_str(was, key));

        if (!str_is(key, "image") || image.len == 0)
            find_images(images, json_get_str(was, key), value);
        else if (!str_eq(image, before))
            takeover_tell(images->report, TAKEOVER_IMAGES,
                          STR_FMT " (" STR_FMT " " STR_FMT "%s" STR_FMT "%s)", STR_ARG(image),
                          STR_ARG(kind_of(images->object)), STR_ARG(name_of(images->object)),
                          before.len > 0 ? ", in place of " : "", STR_ARG(before),
                          str_starts(image, STR(LOCAL))
                              ? "; no registry has it: push it, and set imageRegistry"
                              : "");
    }
}

static void compare_images(const struct takeover_release *before,
                           const struct takeover_release *after, struct takeover_report *report)
{
    const struct yaml_docs *all[] = { &after->objects, &after->hooks };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (size_t j = 0; j < all[i]->count; j++) {
            const struct json *object = json_root(all[i]->docs[j]);
            const struct images images = { report, object };

            find_images(&images, takeover_find(before, kind_of(object), name_of(object)), object);
        }
}

/* ---- what the chart says ---- */

/* In the notes of our charts a list of values begins with a line "These values ..."; its items are
 * indented. */
static void read_notes(const struct takeover_release *after, struct takeover_report *report)
{
    struct str notes = json_str(json_at(json_root(after->doc), "info", "notes")), line;
    bool is_list = false;

    while (notes.len > 0 && str_next(&notes, '\n', &line)) {
        bool begins = str_starts(line, STR("These values ")) || str_ends(line, STR(" no effect"));

        if (begins || (is_list && str_starts(line, STR("  "))))
            takeover_tell(report, TAKEOVER_IGNORED, STR_FMT, STR_ARG(line));
        is_list = begins || (is_list && str_starts(line, STR("  ")));
    }
}

/* ---- objects ---- */

static bool is_ours(const struct json *object)
{
    return str_starts(json_str(json_get(object, "apiVersion")), STR(GROUP));
}

static void compare_objects(const struct takeover_release *before,
                            const struct takeover_release *after, struct takeover_report *report)
{
    for (size_t i = 0; i < before->objects.count; i++) {
        const struct json *object = json_root(before->objects.docs[i]);

        if (is_ours(object) && !takeover_find(after, kind_of(object), name_of(object)))
            takeover_tell(report, TAKEOVER_ROLLS,
                          STR_FMT " " STR_FMT
                                  " is deleted with its pods: no value names it any more",
                          STR_ARG(kind_of(object)), STR_ARG(name_of(object)));
    }
    for (size_t i = 0; i < after->objects.count; i++) {
        const struct json *object = json_root(after->objects.docs[i]);
        const struct json *was = takeover_find(before, kind_of(object), name_of(object));
        const struct json *template = json_at(object, "spec", "template");

        if (!is_ours(object) && was && json_exists(template) &&
            !json_equal(template, json_at(was, "spec", "template")))
            takeover_tell(report, TAKEOVER_CHANGES,
                          "the pods of " STR_FMT " " STR_FMT " are replaced",
                          STR_ARG(kind_of(object)), STR_ARG(name_of(object)));
    }
}

/* The charts put their name on all objects. */
static struct str chart_of(const struct takeover_release *release)
{
    for (size_t i = 0; i < release->objects.count; i++) {
        struct str chart = json_str(
            json_at(json_root(release->objects.docs[i]), "metadata", "labels", "helm.sh/chart"));

        if (chart.len > 0)
            return chart;
    }
    return STR("of an unknown chart");
}

void takeover_compare(const struct takeover_release *before, const struct takeover_release *after,
                      struct takeover_report *report)
{
    report->summary =
        arena_printf(report->arena, "release " STR_FMT "/" STR_FMT ": " STR_FMT " becomes " STR_FMT,
                     STR_ARG(takeover_namespace(after)),
                     STR_ARG(json_str(json_get(json_root(after->doc), "name"))),
                     STR_ARG(chart_of(before)), STR_ARG(chart_of(after)));
    compare_images(before, after, report);
    read_notes(after, report);
    compare_objects(before, after, report);
}
