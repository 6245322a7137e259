/* install.c - copies the hook program into the plugin's folder. */
#include "dra/install.h"

#include "codec/digest.h"
#include "dra/files.h"

enum { MAX_PROGRAM = 16 << 20, SHORT_HASH = 12 };

int install_hook(const char *program, const char *folder, struct buf *ret_path, struct err *err)
{
    auto_buf struct buf bytes;
    char hash[DIGEST_HEX];

    buf_init(&bytes, MAX_PROGRAM);
    if (file_read(program, &bytes, err) < 0)
        return err_wrap(err, "the hook program");
    digest_sha256(buf_str(&bytes), hash);
    hash[SHORT_HASH] = '\0';
    buf_clear(ret_path);
    buf_printf(ret_path, "%s/cpuset-hook-%s", folder, hash);
    return file_exists(buf_text(ret_path))
               ? 0
               : file_replace(buf_text(ret_path), buf_str(&bytes), 0700, err);
}
