// src/runtime/launch/cold_rounds.cpp - single launches with cold caches, beside copies
#include "runtime/launch/cold_rounds.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint8_t kCopied = 0x55;

// The emulated device has no caches to replace the content of.
std::uint64_t lead_bytes_of(const DeviceInfo& info, std::uint64_t wanted) {
  if (wanted != 0) return std::max<std::uint64_t>(wanted / 16 * 16, 16);
  if (info.kind == DeviceKind::Emulator) return 4096;
  return 2 * std::max<std::uint64_t>(info.limits.l2_bytes, 1u << 20u) / 16 * 16;
}

// Two blocks for each multiprocessor, but none without work.
ReadStream read_of(const DeviceInfo& info, std::uint64_t bytes) {
  ReadStream spec;
  spec.groups = bytes / 16;
  const std::uint64_t useful = (spec.groups + spec.threads - 1) / spec.threads;
  spec.blocks = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      useful, 1, std::max<std::uint64_t>(1, std::uint64_t{info.limits.multiprocessors} * 2)));
  return spec;
}

std::uint64_t copied_bytes(std::uint64_t moved) {
  return std::max<std::uint64_t>(16, (moved / 2 + 15) / 16 * 16);
}

}  // namespace

BufferRead::BufferRead(const Launcher& launcher, const Context& context, std::uint64_t bytes)
    : launcher_(launcher),
      spec_(read_of(context.device().info(), bytes)),
      kernel_(launcher.load(spec_.build(context.device().target()))),
      sums_(context, spec_.warps()) {}

void BufferRead::queue(const Buffer<b8>& from, const Stream& stream) const {
  launcher_.launch(kernel_, spec_.geometry(), stream, from, sums_, spec_.groups);
}

std::uint32_t BufferRead::sum(const Buffer<b8>& from, const Stream& stream) const {
  queue(from, stream);
  stream.synchronize();
  std::vector<std::uint32_t> sums(sums_.size());
  sums_.read(sums);
  return std::accumulate(sums.begin(), sums.end(), std::uint32_t{0});
}

ColdRounds::ColdRounds(const Launcher& launcher, const Context& context, std::uint64_t moved,
                       std::uint64_t lead_bytes)
    : begin_(context),
      end_(context),
      lead_(context, lead_bytes_of(context.device().info(), lead_bytes)),
      from_(context, copied_bytes(moved)),
      to_(context, copied_bytes(moved)),
      lead_read_(launcher, context, lead_.bytes()),
      copy_read_(launcher, context, to_.bytes()) {
  lead_.fill_bytes(0);
  from_.fill_bytes(kCopied);
}

double ColdRounds::time(const std::function<void()>& launch, const Stream& stream) const {
  lead_read_.queue(lead_, stream);
  stream.record(begin_);
  launch();
  stream.record(end_);
  stream.synchronize();
  return double{end_.milliseconds_since(begin_)} * 1e3;
}

double ColdRounds::copy(const Stream& stream) {
  to_.fill_bytes(0, &stream);
  const double microseconds = time([&] { to_.copy(from_, &stream); }, stream);
  constexpr std::uint32_t kWord = kCopied * 0x01010101u;
  const auto words = static_cast<std::uint32_t>(to_.bytes() / 4);
  if (copy_read_.sum(to_, stream) != words * kWord) {
    throw Error(Stage::Launch, "copy",
                format_text("the copy of {} beside the launches has other bytes than its source; "
                            "its time would be no rate to compare with; check the device",
                            count_text(to_.bytes(), "byte")));
  }
  return microseconds;
}

}  // namespace ptxgen::inline v0
