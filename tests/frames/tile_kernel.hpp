// tests/frames/tile_kernel.hpp - a launch with a shared tile and accumulators
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/frames/debugger.hpp"

namespace ptxgen::test {

/// Each thread adds the three tiles of its block's 64 inputs, reversed: y[i] = sum over t of
/// x[64 t + 63 - i]. Threads from 52 on add nothing to the second tile, from 40 on to the third.
inline constexpr const char* kTileKernel = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry tiles(.param .u64 y, .param .u64 x)
{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .f32 %f<3>;
  .reg .b64 %rd<6>;
  .shared .align 4 .f32 tile[64];
  ld.param.u64 %rd1, [y];
  ld.param.u64 %rd2, [x];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mad.lo.u32 %r3, %r1, 4, %r2;
  sub.u32 %r4, 63, %r1;
  mad.lo.u32 %r4, %r4, 4, %r2;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd4, %rd2, %rd3;
  add.u64 %rd5, %rd1, %rd3;
  mov.f32 %f1, 0f00000000;
  mov.u32 %r5, 0;
LOOP:
  ld.global.f32 %f2, [%rd4];
  st.shared.f32 [%r3], %f2;
  bar.sync 0;
  ld.shared.f32 %f2, [%r4];
  mad.lo.u32 %r6, %r5, 12, %r1;
  setp.ge.u32 %p1, %r6, 64;
  @%p1 bra SKIP;
  add.f32 %f1, %f1, %f2;
SKIP:
  bar.sync 0;
  add.u64 %rd4, %rd4, 256;
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p2, %r5, 3;
  @%p2 bra LOOP;
  st.global.f32 [%rd5], %f1;
  ret;
}
)";
inline constexpr std::uint32_t kTileBarrier = 26;  ///< lines of kTileKernel
inline constexpr std::uint32_t kTileAdd = 31;
inline constexpr std::uint32_t kTileEnd = 33;
inline constexpr std::uint32_t kTileStore = 38;

/// Runs it on memory of its own, x[i] = i.
class TileLaunch : public frames::LaunchSource {
 public:
  explicit TileLaunch(std::string ptx = kTileKernel, std::uint32_t blocks = 1)
      : ptx_(std::move(ptx)), blocks_(blocks) {
    prepare();
  }

  emulator::Result run(emulator::Observer& observer) override {
    prepare();
    return observe(observer);
  }
  /// The same on the memory that is there.
  emulator::Result observe(emulator::Observer& observer) {
    emulator::Launch launch;
    launch.kernel = "tiles";
    launch.grid = {blocks_, 1, 1};
    launch.block = {64, 1, 1};
    const std::uint64_t parameters[] = {buffers_[0].address, buffers_[1].address};
    launch.parameters = std::as_bytes(std::span(parameters));
    emulator::Options options;
    options.checks.remove(emulator::Rule::GlobalRace);
    return emulator::observe(*program_, launch, observer, options);
  }
  [[nodiscard]] const emulator::Device& device() const override { return *device_; }
  [[nodiscard]] std::span<const frames::Buffer> buffers() const override { return buffers_; }
  [[nodiscard]] const emulator::Program& program() const { return *program_; }

 private:
  void prepare() {
    program_.reset();
    device_ = std::make_unique<emulator::Device>(emulator::gpu_named("sm_80"));
    program_ =
        std::make_unique<emulator::Program>(emulator::Program::load(*device_, ptx_, "tiles.ptx"));
    std::vector<float> x(192);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    buffers_ = {{"y", device_->allocate(256, "y"), ptx::Type::f32, 64},
                {"x", device_->allocate(768, "x"), ptx::Type::f32, 192}};
    device_->fill(buffers_[0].address, std::byte{0}, 256);
    device_->write(buffers_[1].address, std::as_bytes(std::span(x)));
  }

  std::string ptx_;
  std::uint32_t blocks_;
  std::unique_ptr<emulator::Device> device_;
  std::unique_ptr<emulator::Program> program_;
  std::vector<frames::Buffer> buffers_;
};

/// The sum of thread `i` after `tiles` tiles.
inline float tile_sum(std::uint32_t i, std::uint32_t tiles) {
  float sum = 0;
  for (std::uint32_t t = 0; t < tiles; ++t) {
    if (i + 12 * t < 64) sum += static_cast<float>(64 * t + 63 - i);
  }
  return sum;
}

}  // namespace ptxgen::test
