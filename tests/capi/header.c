/* tests/capi/header.c - ptxgen.h compiles as C99 without anything before it */
#include "ptxgen/ptxgen.h"

int capi_header_is_c99(void);
int capi_header_is_c99(void) {
  ptxgen_device_options options = {sizeof(ptxgen_device_options)};
  return (int)options.setting_count + PTXGEN_C_API;
}
