/* fuzz_oci_state.c - whatever a runtime hands to the hook is read to its end or refused. */
#include "dra/hook/oci_state.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oci_state state;

    if (oci_state_read((struct str){ (const char *)data, size }, &state, NULL) < 0)
        return 0;
    if (state.pid < 1 || state.id.len == 0 || state.id.at < (const char *)data ||
        state.id.at + state.id.len > (const char *)data + size)
        abort();
    return 0;
}
