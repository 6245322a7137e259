/* scripts.c - shell scripts of sidecars. */
#include "operator/scripts.h"

#include "codec/json_format.h"

/* kubelet's own entries begin with two dots. */
const char script_reconfigure[] =
    "state() { find /etc/slurm -mindepth 1 ! -path '*/..*' \\( -type f -o -type l \\) "
    "-exec sha256sum {} + | sort | sha256sum; }\n"
    "last=$(state)\n"
    "while sleep 5; do\n"
    "  now=$(state)\n"
    "  [ \"$now\" = \"$last\" ] && continue\n"
    "  until scontrol reconfigure; do sleep 2; done\n"
    "  last=$now\n"
    "done\n";

static const char script_logfile[] =
    "trap 'exit 0' TERM\n"
    "trap 'exit 1' INT HUP\n"
    "mkdir -p \"$(dirname \"$SOCKET\")\"\n"
    "[ -p \"$SOCKET\" ] || { rm -f \"$SOCKET\"; mkfifo -m 777 \"$SOCKET\"; }\n"
    "while true; do\n"
    "  cat <\"$SOCKET\" &\n"
    "  wait $!\n"
    "  sleep 1\n"
    "done\n";

struct json_mut *build_logfile(struct json_build *build, const char *path)
{
    return json_format(build,
                       "{'name':'logfile','restartPolicy':'Always','command':['sh','-c',%s],"
                       "'env':[{'name':'SOCKET','value':%s}],"
                       "'volumeMounts':[{'name':'slurm-logfile','mountPath':'/var/log/slurm'}]}",
                       script_logfile, path);
}

static const char script_initconf[] =
    "set -e\n"
    "for file in /mnt/slurm/*.conf /mnt/slurm/*.key /mnt/slurm/*.jwks; do\n"
    "  [ -e \"$file\" ] || continue\n"
    "  to=/mnt/etc/slurm/$(basename \"$file\")\n"
    "  cp -L \"$file\" \"$to\"\n"
    "  chown 401:401 \"$to\"\n"
    "  case $to in\n"
    "  *.key | *.jwks | */slurmdbd.conf) chmod 0600 \"$to\" ;;\n"
    "  *) chmod 0644 \"$to\" ;;\n"
    "  esac\n"
    "done\n"
    "ls -l /mnt/etc/slurm\n";

struct json_mut *build_initconf(struct json_build *build)
{
    return json_format(build,
                       "{'name':'initconf','command':['sh','-c',%s],"
                       "'env':[{'name':'SLURM_USER','value':'slurm'}],"
                       "'volumeMounts':[{'name':'slurm-etc','mountPath':'/mnt/etc/slurm'},"
                       "{'name':'slurm-config','mountPath':'/mnt/slurm','readOnly':true}]}",
                       script_initconf);
}
