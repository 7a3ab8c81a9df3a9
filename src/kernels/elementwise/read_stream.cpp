// src/kernels/elementwise/read_stream.cpp - a kernel that only reads memory
#include "ptxgen/kernels/elementwise/read_stream.hpp"

#include <array>
#include <string>
#include <vector>

#include "ptxgen/builder.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

// Data is read once: it need not stay in L1, and larger pieces of a DRAM page can be fetched.
constexpr Load stream_load(const ptx::Target& target) {
  Load how{.read_only = true};
  if (target.sm >= 80) {
    how.l1 = L1::no_allocate;
    how.prefetch = Prefetch::L2_256B;
  }
  return how;
}

using Words = std::array<Value<u32>, 4>;

void add_words(Var<u32>& sum, const Words& words) {
  for (const Value<u32>& word : words) sum += word;
}

void body(KernelBuilder& k, const Load& how, Ptr<b8> in, Ptr<u32> sums, Value<u64> groups) {
  k.max_threads(ReadStream::kMaxThreads);
  const Value<u32> thread = k.global_thread_x();
  const Value<u32> block_threads = k.ntid_x();
  const Value<u32> grid_blocks = k.nctaid_x();
  const Value<u32> all_threads = k.mul_lo(block_threads, grid_blocks);
  const Value<u64> first = k.cvt<u64>(thread);
  const Value<u64> stride = k.cvt<u64>(all_threads);
  const Value<u64> iteration = k.mul_wide(all_threads, ReadStream::kUnroll);
  const Ptr<b128> from = in.cast<b128>();
  auto sum = k.var<u32>(0u);

  // All loads of an iteration are in bounds if the last one is.
  const Value<u64> ahead = k.mul_wide(all_threads, ReadStream::kUnroll - 1);
  const Value<u64> inside = k.max(groups, ahead);
  const Value<u64> limit = inside - ahead;
  auto at = k.var(first);
  k.while_([&] { return at < limit; },
           [&] {
             auto next = k.var(from + at);
             std::vector<Words> loaded;
             for (std::uint32_t i = 0; i < ReadStream::kUnroll; ++i) {
               const Ptr<b128> here = next;
               loaded.push_back(k.ld<4>(here.cast<u32>(), how));
               if (i + 1 != ReadStream::kUnroll) next += stride;
             }
             for (const Words& words : loaded) add_words(sum, words);
             at += iteration;
           });
  k.while_([&] { return at < groups; },
           [&] {
             const Ptr<b128> here = from + at;
             add_words(sum, k.ld<4>(here.cast<u32>(), how));
             at += stride;
           });

  const Value<u32> own = sum;
  const Value<u32> of_warp =
      k.warp_reduce(own, [&](const auto& a, const auto& b) { return k.add(a, b); });
  const Value<u32> lane = k.laneid();
  const Pred leads = lane == 0u;
  const Value<u32> warp = thread >> 5u;
  k.if_(leads, [&] { k.st_global(sums + warp, of_warp); });
}

[[noreturn]] void refuse(const char* code, std::string message) {
  Error error(Stage::Launch, code, std::move(message));
  error.kernel = ReadStream::kName;
  throw error.refresh();
}

}  // namespace

ReadStream::KernelType ReadStream::build(const ptx::Target& target) const {
  return build_kernel(kName, target.name,
                      params(param<Ptr<b8>>("in"), param<Ptr<u32>>("sums"), param<u64>("groups")),
                      [&](KernelBuilder& k, Ptr<b8> in, Ptr<u32> sums, Value<u64> count) {
                        body(k, stream_load(target), in, sums, count);
                      });
}

LaunchGeometry ReadStream::geometry() const {
  if (threads == 0 || threads % 32 != 0 || threads > kMaxThreads) {
    refuse("bad-block", format_text("a block of {}; the size must be a multiple of 32 up to {}",
                                    count_text(threads, "thread"), kMaxThreads));
  }
  if (blocks == 0) {
    refuse("empty-grid", "the grid has no blocks; use two per SM");
  }
  return {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}};
}

KernelCost ReadStream::cost() const noexcept {
  return {.bytes_read = 16 * groups, .bytes_written = std::uint64_t{4} * warps(), .flops = 0};
}

std::uint32_t ReadStream::reference(std::span<const std::uint32_t> words) noexcept {
  std::uint32_t sum = 0;
  for (const std::uint32_t word : words) sum += word;
  return sum;
}

}  // namespace ptxgen::inline v0
