// tests/capi/capi.hpp - what the tests of the C API share
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "ptxgen/ptxgen.h"

namespace ptxgen::test {

/// Frees a handle at the end of its scope.
template <class T, void (*kFree)(T*) noexcept>
struct Owned {
  T* handle = nullptr;

  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { kFree(handle); }
  operator T*() const noexcept { return handle; }
  T** operator&() noexcept { return &handle; }
};
using OwnedDevice = Owned<ptxgen_device, ptxgen_device_free>;
using OwnedBuffer = Owned<ptxgen_buffer, ptxgen_buffer_free>;
using OwnedStream = Owned<ptxgen_stream, ptxgen_stream_free>;
using OwnedEvent = Owned<ptxgen_event, ptxgen_event_free>;
using OwnedGraph = Owned<ptxgen_graph, ptxgen_graph_free>;
using OwnedProgram = Owned<ptxgen_program, ptxgen_program_free>;
using OwnedModule = Owned<ptxgen_module, ptxgen_module_free>;
using OwnedFunction = Owned<ptxgen_function, ptxgen_function_free>;
using OwnedPlan = Owned<ptxgen_plan, ptxgen_plan_free>;
using OwnedImage = Owned<ptxgen_image, ptxgen_image_free>;
using OwnedFindings = Owned<ptxgen_findings, ptxgen_findings_free>;
using OwnedError = Owned<ptxgen_error, ptxgen_error_free>;

/// The whole text of a handle's last error.
inline std::string error_text(const void* handle) {
  std::string text(ptxgen_last_error_text(handle, nullptr, 0), '\0');
  ptxgen_last_error_text(handle, text.data(), text.size() + 1);
  return text;
}

inline std::string error_code(const void* handle) {
  OwnedError error;
  error.handle = ptxgen_last_error(handle);
  return ptxgen_error_code(error);
}

inline std::string error_message(const void* handle) {
  OwnedError error;
  error.handle = ptxgen_last_error(handle);
  return ptxgen_error_message(error);
}

/// Requires success; shows the error of `handle` otherwise.
inline void good(ptxgen_status status, const void* handle = nullptr) {
  if (status == PTXGEN_OK) return;
  FAIL(ptxgen_status_name(status) << ": " << error_text(handle));
}

/// Opens the emulated device, whatever the environment says, without a cache on disk.
inline void open_emulator(OwnedDevice& device, std::initializer_list<ptxgen_setting> more = {}) {
  std::vector<ptxgen_setting> settings = {{"PTXGEN_CACHE", "memory"}};
  settings.insert(settings.end(), more);
  ptxgen_device_options options{};
  options.struct_bytes = sizeof options;
  options.ignore_environment = 1;
  options.settings = settings.data();
  options.setting_count = settings.size();
  good(ptxgen_device_open("emulator", &options, &device));
}

inline ptxgen_geometry geometry(std::uint32_t blocks, std::uint32_t threads) {
  ptxgen_geometry result{};
  result.struct_bytes = sizeof result;
  result.grid[0] = blocks;
  result.block[0] = threads;
  return result;
}

/// Device memory with the given elements.
inline void upload(ptxgen_device* device, const std::vector<float>& values, OwnedBuffer& buffer) {
  const std::uint64_t bytes = values.size() * sizeof(float);
  good(ptxgen_buffer_create(device, bytes, &buffer), device);
  good(ptxgen_buffer_write(buffer, 0, values.data(), bytes, nullptr), buffer);
}

inline std::vector<float> download(const ptxgen_buffer* buffer) {
  std::vector<float> values(ptxgen_buffer_span(buffer).bytes / sizeof(float));
  good(ptxgen_buffer_read(buffer, 0, values.data(), values.size() * sizeof(float), nullptr),
       buffer);
  return values;
}

/// y[i] = a * x[i] + y[i], and a kernel that writes outside of memory; a variable of the module.
inline constexpr const char* kSaxpy = R"(.version 7.0
.target sm_75
.address_size 64
.visible .global .align 4 .u32 launches = 7;
.visible .entry saxpy(
  .param .u64 .ptr .global .align 4 y,
  .param .u64 .ptr .global .align 4 x,
  .param .f32 a,
  .param .u32 n)
{
  .reg .pred %p1;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [y];
  ld.param.u64 %rd2, [x];
  ld.param.f32 %f1, [a];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd3, %r5, 4;
  add.u64 %rd4, %rd1, %rd3;
  add.u64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd5];
  ld.global.f32 %f3, [%rd4];
  fma.rn.f32 %f3, %f1, %f2, %f3;
  st.global.f32 [%rd4], %f3;
DONE:
  ret;
}
.visible .entry fault(.param .u64 where)
{
  .reg .b64 %rd1;
  ld.param.u64 %rd1, [where];
  st.global.u32 [%rd1], 1;
  ret;
}
)";

inline void parse_saxpy(OwnedProgram& program) {
  good(ptxgen_program_parse(kSaxpy, std::strlen(kSaxpy), "saxpy.ptx", &program));
}

// Kernels of the catalog by name.
inline ptxgen_status launch_vadd(ptxgen_device* device, ptxgen_span c, ptxgen_span a, ptxgen_span b,
                                 std::uint64_t n, const ptxgen_stream* stream,
                                 ptxgen_launch_record* record) {
  const ptxgen_parameter parameters[] = {{"n", n}};
  const ptxgen_operand operands[] = {{"c", c, 0}, {"a", a, 0}, {"b", b, 0}};
  return ptxgen_launch(device, "vadd", parameters, 1, operands, 3, stream, record);
}
inline ptxgen_status plan_vadd(ptxgen_device* device, ptxgen_span c, ptxgen_span a, ptxgen_span b,
                               std::uint64_t n, const ptxgen_stream* stream, ptxgen_plan** plan) {
  const ptxgen_parameter parameters[] = {{"n", n}};
  const ptxgen_operand operands[] = {{"c", c, 0}, {"a", a, 0}, {"b", b, 0}};
  return ptxgen_plan_create(device, "vadd", parameters, 1, operands, 3, stream, plan);
}
inline ptxgen_status launch_copy(ptxgen_device* device, ptxgen_span out, ptxgen_span in,
                                 std::uint64_t n, const ptxgen_stream* stream,
                                 ptxgen_launch_record* record) {
  const ptxgen_parameter parameters[] = {{"n", n}};
  const ptxgen_operand operands[] = {{"out", out, 0}, {"in", in, 0}};
  return ptxgen_launch(device, "copy", parameters, 1, operands, 2, stream, record);
}
inline ptxgen_status launch_fma_rpt(ptxgen_device* device, ptxgen_span out, ptxgen_span in,
                                    std::uint64_t n, std::uint64_t k, float a, float b,
                                    const ptxgen_stream* stream, ptxgen_launch_record* record) {
  const ptxgen_parameter parameters[] = {{"n", n}, {"k", k}};
  const ptxgen_operand operands[] = {{"out", out, 0}, {"in", in, 0}, {"a", {}, a}, {"b", {}, b}};
  return ptxgen_launch(device, "fma_rpt", parameters, 2, operands, 4, stream, record);
}

}  // namespace ptxgen::test
