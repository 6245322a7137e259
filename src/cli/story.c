/* story.c - an answer to "why?" as text and as JSON. */
#include "cli/story.h"

#include "cli/text.h"

#include <stdio.h>
#include <string.h>

enum { EXIT_WAITS = 10, EXIT_NEVER = 11, EXIT_FAILED = 12 };

static const struct {
    const char *name, *word, *colour;
    int exit_code;
} results[] = {
    [STORY_READY] = { "ready", "READY", "32", 0 },
    [STORY_RUNNING] = { "running", "RUNNING", "32", 0 },
    [STORY_BOUND] = { "bound", "BOUND", "36", EXIT_WAITS },
    [STORY_WAITING] = { "waiting", "WAITING", "33", EXIT_WAITS },
    [STORY_NEVER] = { "never", "NEVER", "31", EXIT_NEVER },
    [STORY_FAILED] = { "failed", "FAILED", "31", EXIT_FAILED },
    [STORY_ENDED] = { "ended", "ENDED", "36", 0 },
};

const char *story_result_name(enum story_result result)
{
    return results[result].name;
}

int story_exit_code(enum story_result result)
{
    return results[result].exit_code;
}

void story_conclude(struct story *story, enum story_result result, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    story->result = result;
    story->summary = text_plain_vprintf(story->arena, format, args);
    va_end(args);
}

void story_add(struct story *story, const char *about, const char *format, ...)
{
    const char *text;
    va_list args;

    va_start(args, format);
    text = text_plain_vprintf(story->arena, format, args);
    va_end(args);
    if (!text[0] || story->line_count == STORY_MAX_LINES)
        return;
    story->lines[story->line_count].about = about;
    story->lines[story->line_count++].text = text;
}

void story_attach(struct story *story, const char *key, const struct json *value)
{
    if (!json_exists(value) || story->part_count == STORY_MAX_PARTS)
        return;
    story->parts[story->part_count].key = key;
    story->parts[story->part_count++].value = value;
}

/* A title stands once before the lines that it is of. */
void story_write_text(const struct story *story, bool colours, struct buf *out)
{
    const char *before = "";

    if (colours)
        buf_printf(out, "\033[1;%sm%-8s\033[0m %s\n", results[story->result].colour,
                   results[story->result].word, story->summary);
    else
        buf_printf(out, "%-8s %s\n", results[story->result].word, story->summary);
    for (unsigned i = 0; i < story->line_count; i++) {
        const char *about = story->lines[i].about;

        buf_printf(out, "  %-9s %s\n", strcmp(about, before) == 0 ? "" : about,
                   story->lines[i].text);
        before = about;
    }
}

void story_write_json(const struct story *story, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build), *evidence;

    json_put_text(build, root, "apiVersion", "view.slinky.slurm.net/v1alpha1");
    json_put_text(build, root, "kind", "Why");
    json_put_text(build, root, "result", results[story->result].name);
    json_put_text(build, root, "summary", story->summary);
    evidence = json_put_array(build, root, "evidence");
    for (unsigned i = 0; i < story->line_count; i++) {
        struct json_mut *line = json_new_object(build);

        json_put_text(build, line, "about", story->lines[i].about);
        json_put_text(build, line, "text", story->lines[i].text);
        json_push(evidence, line);
    }
    for (unsigned i = 0; i < story->part_count; i++)
        json_put(build, root, story->parts[i].key, json_copy(build, story->parts[i].value));
    json_mut_write_pretty(root, out);
}
