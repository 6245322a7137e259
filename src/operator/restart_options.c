/* restart_options.c - the options that a reconfigure of slurmctld leaves as they were. */
#include "operator/restart_options.h"

#include "codec/slurmconf.h"

/* By slurm.conf(5) of Slurm 26.05. */
static const struct restart_option {
    const char *name, *why;
} options[] = {
    { "AuthType", "all daemons must be stopped before it changes" },
    { "CredType", "it goes with AuthType" },
    { "CommunicationParameters", "the sockets stay open: IPv4, IPv6, the address they listen at" },
    { "MaxNodeCount", "the tables of nodes keep their size" },
    { "SlurmctldPort", "the sockets stay open" },
    { "TLSType", "the sockets stay open" },
};
enum { OPTION_COUNT = sizeof(options) / sizeof(options[0]) };

int restart_options(struct arena *arena, struct str conf, const char **ret_text, struct err *err)
{
    struct str values[OPTION_COUNT] = { 0 };
    const struct conf_pair *pairs;
    const char *text = "";
    size_t count;
    int result;

    if ((result = conf_parse(arena, conf, &pairs, &count, err)) < 0)
        return result;
    for (size_t i = 0; i < count; i++) /* the last line of an option counts */
        for (size_t k = 0; k < OPTION_COUNT; k++)
            if (conf_key_is(&pairs[i], options[k].name))
                values[k] = pairs[i].value;
    for (size_t k = 0; k < OPTION_COUNT; k++)
        if (values[k].len > 0)
            text = arena_printf(arena, "%s%s%s=" STR_FMT, text, text[0] ? " " : "", options[k].name,
                                STR_ARG(values[k]));
    *ret_text = text;
    return 0;
}
