/* tests/package/consumer/main.c - the installed C API, from C99 */
#include <ptxgen/ptxgen.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  ptxgen_program* program = NULL;
  ptxgen_device* device = NULL;
  ptxgen_device* other = NULL;
  const ptxgen_parameter size = {"n", 100};
  const ptxgen_status built = ptxgen_program_build(NULL, "sm_80", "vadd", &size, 1, &program);
  const ptxgen_status opened = ptxgen_device_open("emulator", NULL, &device);
  /* An exception of the C++ library must arrive as a status here, shared library or not. */
  const ptxgen_status refused = ptxgen_device_open("toaster", NULL, &other);
  const int good = built == PTXGEN_OK && opened == PTXGEN_OK && refused == PTXGEN_ERROR_DEVICE &&
                   strstr(ptxgen_program_ptx(program, NULL), ".target sm_80") != NULL &&
                   ptxgen_c_api() >= PTXGEN_C_API;
  printf("ptxgen %s: %s\n", ptxgen_version_string(), good ? "good" : "wrong");
  ptxgen_program_free(program);
  ptxgen_device_free(device);
  return good ? 0 : 1;
}
