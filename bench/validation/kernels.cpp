// bench/validation/kernels.cpp - the kernels that others timed
#include "bench/validation/kernels.hpp"

#include <algorithm>
#include <utility>

#include "support/format.hpp"

namespace ptxgen::validation {

namespace {

constexpr std::uint64_t kDouble = 8;

double microseconds(std::uint64_t bytes, double gb_per_s) {
  return static_cast<double>(bytes) / gb_per_s * 1e-3;
}

}  // namespace

Point stream_point(std::uint32_t block, std::uint32_t arrays_read, std::uint32_t arrays_written,
                   double gb_per_s) {
  constexpr std::uint64_t kElements = (std::uint64_t{1} << 27) + 2;
  Point point;
  point.label = format_text("block {}", block);
  point.work.bytes_read = arrays_read * kElements * kDouble;
  point.work.bytes_written = arrays_written * kElements * kDouble;
  point.work.blocks = kElements / block + 1;
  point.work.threads = block;
  point.work.blocks_per_sm = 2;
  point.work.bytes_in_flight = static_cast<double>(arrays_read * kDouble);
  point.measured_us = microseconds(point.work.bytes_read + point.work.bytes_written, gb_per_s);
  return point;
}

Point small_point(const ptx::Gpu& gpu, std::uint64_t elements, std::uint32_t block,
                  double gb_per_s) {
  Point point;
  point.label =
      format_text("block {}, {:.3g} MB", block, static_cast<double>(2 * elements * kDouble) * 1e-6);
  point.work.bytes_read = point.work.bytes_written = elements * kDouble;
  point.work.blocks = elements / block + 1;
  point.work.threads = block;
  point.work.blocks_per_sm = std::min<std::uint32_t>(gpu.threads_per_sm / block, gpu.blocks_per_sm);
  point.work.bytes_in_flight = kDouble;
  point.measured_us = microseconds(2 * elements * kDouble, gb_per_s);
  return point;
}

Point library_point(const ptx::Gpu& gpu, std::string label, std::uint64_t bytes_read,
                    std::uint64_t bytes_written, double us) {
  constexpr std::uint32_t kThreads = 256;
  constexpr std::uint64_t kVector = 16;
  Point point;
  point.label = std::move(label);
  point.work.bytes_read = bytes_read;
  point.work.bytes_written = bytes_written;
  point.work.blocks = bytes_read / kVector / kThreads + 1;
  point.work.threads = kThreads;
  point.work.blocks_per_sm = gpu.threads_per_sm / kThreads;
  point.work.bytes_in_flight = kVector;
  point.measured_us = us;
  return point;
}

}  // namespace ptxgen::validation
