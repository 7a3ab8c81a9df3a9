// tests/kernels/block_device.hpp - kernels of block formats on the emulator
#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ptxgen/kernels/quantization/dequantize.hpp"
#include "ptxgen/kernels/quantization/quantize.hpp"
#include "ptxgen/runtime.hpp"
#include "ptxgen/runtime/device/findings.hpp"

namespace ptxgen::test {

/// A device with a launcher.
struct Rig {
  Device device = Device::open("emulator");
  Context context{device};
  ptxgen::Stream stream{context};
  Launcher launcher{context};
};

inline void check_findings(const Rig& rig) {
  std::string texts;
  for (const LaunchFinding& finding : rig.device.findings()) texts += finding.text + "\n";
  CHECK(texts == "");
  rig.device.clear_findings();
}

/// Bytes on the device, at a distance from an address that is a multiple of 256.
class DeviceBytes {
 public:
  DeviceBytes(const Rig& rig, std::size_t size, std::size_t distance)
      : buffer_(rig.context, size + distance), distance_(distance) {
    buffer_.fill_bytes(0xa5);
  }
  DeviceBytes(const Rig& rig, std::span<const std::byte> content, std::size_t distance)
      : DeviceBytes(rig, content.size(), distance) {
    std::vector<std::uint8_t> all(buffer_.size());
    for (std::size_t i = 0; i < content.size(); ++i) {
      all[distance + i] = std::to_integer<std::uint8_t>(content[i]);
    }
    buffer_.write(all);
  }
  [[nodiscard]] DeviceRange range() const {
    return {buffer_.address().value + distance_, buffer_.bytes() - distance_};
  }
  [[nodiscard]] std::vector<std::byte> content() const {
    std::vector<std::uint8_t> all(buffer_.size());
    buffer_.read(all);
    std::vector<std::byte> bytes;
    for (std::size_t i = distance_; i < all.size(); ++i) bytes.push_back(std::byte{all[i]});
    return bytes;
  }

 private:
  Buffer<b8> buffer_;
  std::size_t distance_;
};

/// Distances of the operands from an address that is a multiple of 256.
struct Distances {
  std::size_t blocks = 0, floats = 0;
};

/// What the kernel writes for blocks.
inline std::vector<std::byte> run_kernel(const Rig& rig, const Dequantize& spec,
                                         std::span<const std::byte> blocks, Distances at = {}) {
  const DeviceBytes w(rig, blocks, at.blocks);
  const DeviceBytes y(rig, std::size_t{spec.n} * bytes(spec.y), at.floats);
  rig.launcher.launch(spec, {.y = y.range(), .w = w.range()}, rig.stream);
  rig.stream.synchronize();
  check_findings(rig);
  return y.content();
}

/// What it writes for floats of type `spec.x`.
inline std::vector<std::byte> run_kernel(const Rig& rig, const Quantize& spec,
                                         std::span<const std::byte> floats, Distances at = {}) {
  const DeviceBytes x(rig, floats, at.floats);
  const DeviceBytes w(rig, bytes(spec.type, spec.n), at.blocks);
  rig.launcher.launch(spec, {.w = w.range(), .x = x.range()}, rig.stream);
  rig.stream.synchronize();
  check_findings(rig);
  return w.content();
}

}  // namespace ptxgen::test
