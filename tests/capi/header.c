/* tests/capi/header.c - ptxgen.h compiles as C99 without anything before it */
#include "ptxgen/ptxgen.h"

int capi_header_is_c99(void);
int capi_header_is_c99(void) {
  ptxgen_geometry geometry = {0};
  geometry.struct_bytes = sizeof geometry;
  return (int)geometry.grid[0] + PTXGEN_C_API;
}
