/* completion.c - completion of the command line. */
#include "cmd/completion.h"

const char completion_help[] =
    "bash:  source <(slinc completion bash)            # in ~/.bashrc\n"
    "zsh:   source <(slinc completion zsh)             # in ~/.zshrc, after compinit\n"
    "fish:  slinc completion fish > ~/.config/fish/completions/slinc.fish\n"
    "kubectl slinc: install the program also as kubectl-slinc and kubectl_complete-slinc";

static const struct {
    const char *shell, *script;
} scripts[] = {
    { "bash", "_slinc() {\n"
              "    local word IFS=$'\\n'\n"
              "    COMPREPLY=()\n"
              "    while read -r word; do\n"
              "        [[ $word == :* ]] || COMPREPLY+=(\"${word%%$'\\t'*}\")\n"
              "    done < <(\"${COMP_WORDS[0]}\" __complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" "
              "2>/dev/null)\n"
              "}\n"
              "complete -F _slinc slinc\n" },
    { "zsh", "#compdef slinc\n"
             "_slinc() {\n"
             "    local -a found\n"
             "    local line\n"
             "    while IFS= read -r line; do\n"
             "        [[ $line == :* ]] || found+=(\"${line//$'\\t'/:}\")\n"
             "    done < <(\"${words[1]}\" __complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
             "    _describe 'slinc' found\n"
             "}\n"
             "compdef _slinc slinc\n" },
    { "fish",
      "function __slinc_complete\n"
      "    set -l words (commandline -opc)\n"
      "    slinc __complete $words[2..-1] (commandline -ct) 2>/dev/null | string match -v -r '^:'\n"
      "end\n"
      "complete -c slinc -f -a '(__slinc_complete)'\n" },
};

bool completion_script(struct str shell, struct buf *out)
{
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        if (str_is(shell, scripts[i].shell)) {
            buf_add_text(out, scripts[i].script);
            return true;
        }
    }
    return false;
}

/* ---- candidates ---- */

static void offer(struct str typed, const char *before, const char *word, const char *what,
                  struct buf *out)
{
    auto_buf struct buf whole;

    buf_init(&whole, COMPLETION_MAX);
    buf_printf(&whole, "%s%s", before, word);
    if (str_starts(buf_str(&whole), typed))
        buf_printf(out, "%s%s%s\n", buf_text(&whole), what[0] ? "\t" : "", what);
}

static void offer_commands(const struct command *commands, struct str typed, struct buf *out)
{
    for (; commands->name; commands++)
        offer(typed, "", commands->name, commands->what, out);
}

static void offer_words(struct str list, struct str typed, struct buf *out)
{
    struct str word;

    while (list.len > 0 && str_next(&list, ' ', &word)) {
        if (word.len > 0 && str_starts(word, typed))
            buf_printf(out, STR_FMT "\n", STR_ARG(word));
    }
}

static void offer_flags(const struct flag *flags, struct str typed, struct buf *out)
{
    for (; flags->name; flags++)
        offer(typed, flags->name[1] ? "--" : "-", flags->name, flags->help, out);
}

/* The flag whose value is typed now; NULL. */
static const struct flag *flag_before(const struct flag *flags, struct str word)
{
    struct str name = str_sub(word, str_starts(word, STR("--")) ? 2 : 1, word.len);

    for (; str_starts(word, STR("-")) && flags->name; flags++)
        if (str_is(name, flags->name))
            return flags->type == FLAG_BOOL ? NULL : flags;
    return NULL;
}

static void offer_values(const struct flag *flag, struct str typed, struct buf *out)
{
    static const struct {
        const char *flag, *values;
    } rows[] = { { "output", "json" },
                 { "o", "json" },
                 { "color", "auto always never" },
                 { "fail-on", "warn fail never" } };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(flag->name, rows[i].flag) == 0)
            offer_words(str_of(rows[i].values), typed, out);
}

void completion_candidates(const struct command *commands, int count, char *const *words,
                           struct buf *out)
{
    struct str typed = str_of(count > 0 ? words[count - 1] : "");
    const struct command *command = commands;
    const struct flag *before;

    while (count > 1 && command->name && strcmp(command->name, words[0]) != 0)
        command++;
    if (count <= 1) {
        offer_commands(commands, typed, out);
    } else if (command->name && command->terminal) {
        const struct terminal_command *terminal = command->terminal;

        before = flag_before(terminal->flags, str_of(words[count - 2]));
        if (before)
            offer_values(before, typed, out);
        else if (str_starts(typed, STR("-")))
            offer_flags(terminal->flags, typed, out);
        else if (count == 2)
            offer_words(str_of(terminal->kinds), typed, out);
    } else if (command->name && strcmp(command->name, "completion") == 0 && count == 2) {
        offer_words(STR("bash zsh fish"), typed, out);
    }
    buf_add_text(out, ":4\n");
}
