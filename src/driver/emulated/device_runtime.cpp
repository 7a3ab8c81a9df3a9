// src/driver/emulated/device_runtime.cpp - synchronisation of grids, for links
#include "driver/emulated/device_runtime.hpp"

#include <algorithm>

#include "ptxgen/ptx/parser.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

/// The barrier is the second word of the workspace. Each block adds 1 to it, block 0 what is
/// missing to 2^31, so the highest bit changes when all have arrived, and the next barrier begins
/// with the others at 0.
constexpr std::string_view kRuntimeText = R"(.version 6.0
.target sm_70
.address_size 64
.visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  ld.param.u32 %r1, [scope];
  mov.u32 %r2, %envreg1;
  mov.u32 %r3, %envreg2;
  mov.b64 %rd1, {%r3, %r2};
  setp.eq.u32 %p1, %r1, 1;
  selp.b64 %rd2, %rd1, 0, %p1;
  st.param.b64 [handle], %rd2;
  ret;
}
.visible .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
  .reg .pred %p<8>;
  .reg .b32 %r<24>;
  .reg .b64 %rd<3>;
  mov.u32 %r1, %envreg1;
  mov.u32 %r2, %envreg2;
  mov.b64 %rd1, {%r2, %r1};
  setp.ne.u64 %p1, %rd1, 0;
  @%p1 bra COOPERATIVE;
  trap;
COOPERATIVE:
  ld.param.u64 %rd2, [handle];
  mov.u32 %r3, 1;
  setp.ne.u64 %p2, %rd2, %rd1;
  @%p2 bra RETURN;
  barrier.sync 0;
  mov.u32 %r4, %tid.x;
  mov.u32 %r5, %tid.y;
  mov.u32 %r6, %tid.z;
  or.b32 %r7, %r4, %r5;
  or.b32 %r7, %r7, %r6;
  setp.ne.u32 %p3, %r7, 0;
  @%p3 bra ARRIVED;
  mov.u32 %r8, %nctaid.x;
  mov.u32 %r9, %nctaid.y;
  mov.u32 %r10, %nctaid.z;
  mul.lo.u32 %r11, %r8, %r9;
  mul.lo.u32 %r11, %r11, %r10;
  sub.u32 %r12, 0x80000001, %r11;
  mov.u32 %r13, %ctaid.x;
  mov.u32 %r14, %ctaid.y;
  mov.u32 %r15, %ctaid.z;
  or.b32 %r16, %r13, %r14;
  or.b32 %r16, %r16, %r15;
  setp.eq.u32 %p4, %r16, 0;
  selp.b32 %r17, %r12, 1, %p4;
  fence.acq_rel.gpu;
  atom.acq_rel.gpu.add.u32 %r18, [%rd1+4], %r17;
WAIT:
  ld.acquire.gpu.u32 %r19, [%rd1+4];
  xor.b32 %r20, %r18, %r19;
  setp.ge.s32 %p5, %r20, 0;
  @%p5 bra WAIT;
  fence.acq_rel.gpu;
ARRIVED:
  barrier.sync 0;
  mov.u32 %r3, 0;
RETURN:
  st.param.b32 [error], %r3;
  ret;
}
.visible .func (.param .b32 error) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 flags)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  .param .b64 a;
  .param .b32 b;
  .param .b32 c;
  ld.param.u64 %rd1, [handle];
  ld.param.u32 %r1, [flags];
  st.param.b64 [a], %rd1;
  st.param.b32 [b], %r1;
  call.uni (c), cudaCGSynchronize, (a, b);
  ld.param.u32 %r2, [c];
  st.param.b32 [error], %r2;
  ret;
}
.visible .func (.param .b32 error) cudaCGGetSize(.param .b64 threads, .param .b64 grids,
                                                  .param .b64 handle)
{
  .reg .pred %p<5>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<5>;
  mov.u32 %r1, %envreg1;
  mov.u32 %r2, %envreg2;
  mov.b64 %rd1, {%r2, %r1};
  ld.param.u64 %rd2, [handle];
  ld.param.u64 %rd3, [threads];
  ld.param.u64 %rd4, [grids];
  mov.u32 %r3, 1;
  setp.eq.u64 %p1, %rd2, 0;
  setp.ne.or.u64 %p1, %rd2, %rd1, %p1;
  @%p1 bra RETURN;
  mov.u32 %r4, %nctaid.x;
  mov.u32 %r5, %nctaid.y;
  mov.u32 %r6, %nctaid.z;
  mov.u32 %r7, %ntid.x;
  mov.u32 %r8, %ntid.y;
  mov.u32 %r9, %ntid.z;
  mul.lo.u32 %r10, %r4, %r5;
  mul.lo.u32 %r10, %r10, %r6;
  mul.lo.u32 %r11, %r7, %r8;
  mul.lo.u32 %r11, %r11, %r9;
  mul.lo.u32 %r12, %r10, %r11;
  setp.ne.u64 %p2, %rd3, 0;
  setp.ne.u64 %p3, %rd4, 0;
  @%p2 st.u32 [%rd3], %r12;
  @%p3 st.u32 [%rd4], %r3;
  mov.u32 %r3, 0;
RETURN:
  st.param.b32 [error], %r3;
  ret;
}
.visible .func (.param .b32 error) cudaCGGetRank(.param .b64 thread, .param .b64 grid,
                                                  .param .b64 handle)
{
  .reg .pred %p<5>;
  .reg .b32 %r<24>;
  .reg .b64 %rd<5>;
  mov.u32 %r1, %envreg1;
  mov.u32 %r2, %envreg2;
  mov.b64 %rd1, {%r2, %r1};
  ld.param.u64 %rd2, [handle];
  ld.param.u64 %rd3, [thread];
  ld.param.u64 %rd4, [grid];
  mov.u32 %r3, 1;
  setp.eq.u64 %p1, %rd2, 0;
  setp.ne.or.u64 %p1, %rd2, %rd1, %p1;
  @%p1 bra RETURN;
  mov.u32 %r4, %ctaid.x;
  mov.u32 %r5, %ctaid.y;
  mov.u32 %r6, %ctaid.z;
  mov.u32 %r7, %nctaid.x;
  mov.u32 %r8, %nctaid.y;
  mad.lo.u32 %r9, %r6, %r8, %r5;
  mad.lo.u32 %r9, %r9, %r7, %r4;
  mov.u32 %r10, %tid.x;
  mov.u32 %r11, %tid.y;
  mov.u32 %r12, %tid.z;
  mov.u32 %r13, %ntid.x;
  mov.u32 %r14, %ntid.y;
  mov.u32 %r15, %ntid.z;
  mad.lo.u32 %r16, %r9, %r15, %r12;
  mad.lo.u32 %r16, %r16, %r14, %r11;
  mad.lo.u32 %r16, %r16, %r13, %r10;
  mov.u32 %r3, 0;
  setp.ne.u64 %p2, %rd3, 0;
  setp.ne.u64 %p3, %rd4, 0;
  @%p2 st.u32 [%rd3], %r16;
  @%p3 st.u32 [%rd4], %r3;
RETURN:
  st.param.b32 [error], %r3;
  ret;
}
)";

constexpr std::string_view kArchiveMagic = "!<arch>\n";
/// The only member of libcudadevrt.a since CUDA 5.
constexpr std::string_view kRuntimeMember = "cuda_device_runtime.o/";
constexpr std::size_t kMemberHeader = 60;
constexpr std::size_t kSizeField = 48;

/// A decimal number that blanks end; 0 if there is none.
std::size_t decimal_of(std::string_view text) noexcept {
  std::size_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    value = value * 10 + static_cast<std::size_t>(c - '0');
  }
  return value;
}

}  // namespace

bool is_device_runtime(std::span<const std::byte> bytes) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kArchiveMagic)) return false;
  std::string_view rest = text.substr(kArchiveMagic.size());
  // Names of more than 15 characters are in the member "//", one a line; others name their place.
  while (rest.size() >= kMemberHeader) {
    const std::string_view name = rest.substr(0, 16);
    const std::size_t size = decimal_of(rest.substr(kSizeField, 10));
    rest.remove_prefix(kMemberHeader);
    if (size > rest.size()) return false;
    if (name.starts_with("// ")) {
      for (std::string_view names = rest.substr(0, size); !names.empty();) {
        if (names.starts_with(kRuntimeMember)) return true;
        names.remove_prefix(std::min(names.size(), names.find('\n')));
        names.remove_prefix(names.empty() ? 0 : 1);
      }
    }
    rest.remove_prefix(std::min(rest.size(), size + size % 2));
  }
  return false;
}

bool needs_device_runtime(std::span<const LinkInput> inputs) {
  const ptx::Module runtime = ptx::parse(kRuntimeText, "libcudadevrt");
  bool needed = false;
  for (const LinkInput& input : inputs) {
    const ptx::Module module = ptx::parse(input.ptx, input.name);
    for (const ptx::Function& function : runtime.functions) {
      const ptx::Function* found = module.find_function(runtime.text(function.name));
      if (found == nullptr) continue;
      if (!found->declaration) return false;  // the caller has a runtime of its own
      needed = true;
    }
  }
  return needed;
}

std::string_view device_runtime() noexcept { return kRuntimeText; }

}  // namespace ptxgen::inline v0::driver::emulated
