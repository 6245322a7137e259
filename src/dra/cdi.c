/* cdi.c - writes and removes CDI files. */
#include "dra/cdi.h"

#include "codec/json_format.h"
#include "dra/files.h"
#include "dra/names.h"

#include <sys/stat.h>

enum { HOOK_TIMEOUT_S = 5, MAX_FILE = 1 << 20, MAX_ENV = 64 * 1024 };

void cdi_device_id(struct str uid, struct buf *out)
{
    buf_printf(out, DRA_CDI_KIND "=claim-" STR_FMT, STR_ARG(uid));
}

static const char *path_of(const struct cdi *cdi, struct str uid, struct buf *path)
{
    buf_clear(path);
    buf_printf(path, "%s/" DRA_DRIVER "-claim-" STR_FMT ".json", cdi->folder, STR_ARG(uid));
    return buf_text(path);
}

int cdi_write(const struct cdi *cdi, const struct prepared_claim *claim, struct err *err)
{
    auto_json_build struct json_build *build = json_build_new();
    const struct json *root = json_root(claim->doc);
    const char *cpus = json_str(json_get(root, "cpus")).at;
    auto_buf struct buf path, text, name, environment;
    struct json_mut *file;
    int result;

    buf_init(&path, FILES_MAX_PATH);
    buf_init(&text, MAX_FILE);
    buf_init(&name, FILES_MAX_PATH);
    buf_init(&environment, MAX_ENV);
    buf_printf(&name, "claim-%s", claim->uid);
    buf_printf(&environment, "SLINC_CPUS=%s", cpus);
    file = json_format(build,
                       "{'cdiVersion':'0.5.0','kind':'" DRA_CDI_KIND
                       "','devices':[{'name':%s,'containerEdits':{'env':[%s],'hooks':["
                       "{'hookName':'createRuntime','path':%s,'args':['slinc-cpuset-hook',%s,%s,%s]"
                       ",'timeout':%d}]}}]}",
                       buf_text(&name), buf_text(&environment), cdi->hook, cdi->records, claim->uid,
                       cpus, (int)HOOK_TIMEOUT_S);
    json_mut_write_pretty(file, &text);
    if ((result = buf_check(&text, "the CDI file", err)) < 0 ||
        (result = folder_make(cdi->folder, 0755, err)) < 0)
        return result;
    return file_replace(path_of(cdi, str_of(claim->uid), &path), buf_str(&text), S_IRUSR | S_IWUSR,
                        err);
}

int cdi_remove(const struct cdi *cdi, struct str uid, struct err *err)
{
    auto_buf struct buf path;

    buf_init(&path, FILES_MAX_PATH);
    return file_remove(path_of(cdi, uid, &path), err);
}
