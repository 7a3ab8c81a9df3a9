// src/driver/shim/forwarded.cpp - functions of libcuda that are passed on unseen
#include "driver/shim/shim.hpp"

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "the shim has jumps for x86-64 and AArch64 only"
#endif

namespace ptxgen::inline v0::driver::shim {
namespace {

CUresult not_there() { return CUDA_ERROR_NOT_SUPPORTED; }

}  // namespace

// Their parameters are not known here: each is a jump through a variable, with all registers as
// they were.
extern "C" {
#define PTXGEN_REFUSED(symbol)                                             \
  extern __attribute__((visibility("hidden"))) void* ptxgen_real_##symbol; \
  void* ptxgen_real_##symbol = reinterpret_cast<void*>(&not_there);
#include "driver/shim/forwarded.def"
}

#if defined(__x86_64__)
#define PTXGEN_JUMP(symbol) "  jmp *ptxgen_real_" symbol "(%rip)\n"
#else
#define PTXGEN_JUMP(symbol)                    \
  "  adrp x16, ptxgen_real_" symbol            \
  "\n"                                         \
  "  ldr x16, [x16, :lo12:ptxgen_real_" symbol \
  "]\n"                                        \
  "  br x16\n"
#endif
#define PTXGEN_REFUSED(symbol)                                            \
  asm(".text\n.globl " #symbol "\n.type " #symbol ", %function\n" #symbol \
      ":\n" PTXGEN_JUMP(#symbol) ".size " #symbol ", .-" #symbol "\n");
#include "driver/shim/forwarded.def"
#undef PTXGEN_JUMP

void find_forwarded() noexcept {
#define PTXGEN_REFUSED(symbol) \
  if (void* const found = real_symbol(#symbol)) ptxgen_real_##symbol = found;
#include "driver/shim/forwarded.def"
}

}  // namespace ptxgen::inline v0::driver::shim
