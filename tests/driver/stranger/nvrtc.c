/* tests/driver/stranger/nvrtc.c - a program that loads what NVRTC gives as a cubin

   With -DLIBRARY a library with NVRTC's functions: its PTX is PTX, its cubin is not. Else the program,
   which is linked with one such library and opens another, and prints for both the size that it gets,
   the first bytes, and what the driver says to the image. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifdef LIBRARY
static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";
/* Of an ELF file of CUDA's machine the emulated driver reads no more. */
static const char cubin[64] = {0x7f, 'E', 'L', 'F', [18] = (char)190};

static int copy(char *to, const char *from, size_t bytes) {
  memcpy(to, from, bytes);
  return 0;
}
int nvrtcGetPTXSize(void *program, size_t *bytes) {
  *bytes = sizeof ptx;
  return program != NULL;
}
int nvrtcGetPTX(void *program, char *text) { return program != NULL || copy(text, ptx, sizeof ptx); }
int nvrtcGetCUBINSize(void *program, size_t *bytes) {
  *bytes = sizeof cubin;
  return program != NULL;
}
int nvrtcGetCUBIN(void *program, char *code) {
  return program != NULL || copy(code, cubin, sizeof cubin);
}
#else
typedef int Size(void *, size_t *);
typedef int Code(void *, char *);
Size nvrtcGetCUBINSize;
Code nvrtcGetCUBIN;
/* Called by name, as programs do: a pointer to a function is bound without asking LD_AUDIT. */
static int linked_size(void *program, size_t *bytes) { return nvrtcGetCUBINSize(program, bytes); }
static int linked_code(void *program, char *code) { return nvrtcGetCUBIN(program, code); }

static void *symbol(void *library, const char *name) {
  void *found = library != NULL ? dlsym(library, name) : NULL;
  if (found == NULL) fprintf(stderr, "no %s: %s\n", name, dlerror());
  return found;
}

static void show(const char *how, Size *size, Code *code, int (*load)(void **, const void *)) {
  char image[4096] = {0};
  size_t bytes = 0;
  void *module = NULL;
  if (size(NULL, &bytes) != 0 || bytes > sizeof image || code(NULL, image) != 0) return;
  printf("%s: %zu bytes, %.8s, %d\n", how, bytes, image[0] == '\177' ? image + 1 : image,
         load(&module, image));
}

int main(int count, char **arguments) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
  int (*init)(unsigned) = (int (*)(unsigned))symbol(cuda, "cuInit");
  int (*retain)(void **, int) = (int (*)(void **, int))symbol(cuda, "cuDevicePrimaryCtxRetain");
  int (*set)(void *) = (int (*)(void *))symbol(cuda, "cuCtxSetCurrent");
  int (*load)(void **, const void *) =
      (int (*)(void **, const void *))symbol(cuda, "cuModuleLoadData");
  void *context = NULL;
  if (init == NULL || retain == NULL || set == NULL || load == NULL) return 1;
  if (init(0) != 0 || retain(&context, 0) != 0 || set(context) != 0) return 1;
  show("linked", linked_size, linked_code, load);
  for (int i = 1; i < count; ++i) {
    void *opened = dlopen(arguments[i], RTLD_NOW);
    Size *size = (Size *)symbol(opened, "nvrtcGetCUBINSize");
    Code *code = (Code *)symbol(opened, "nvrtcGetCUBIN");
    if (size == NULL || code == NULL) return 1;
    show(strrchr(arguments[i], '/') + 1, size, code, load);
  }
  return 0;
}
#endif
