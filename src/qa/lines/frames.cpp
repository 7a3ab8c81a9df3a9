// src/qa/lines/frames.cpp - frames: the data flow of a GEMV, step by step
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "ptxgen/frames.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "qa/edits.hpp"
#include "qa/fixture.hpp"
#include "qa/gemv_check.hpp"
#include "qa/lines/lines.hpp"
#include "qa/tally.hpp"

namespace ptxgen::qa {

namespace framing {
namespace {

using frames::Frame;
using frames::FrameCheck;
using frames::FrameOptions;
using frames::FrameRecorder;
using frames::ValueTracker;
using frames::WatchedValues;

constexpr std::uint32_t kTile = GemvCoalesced::kTile;
constexpr frames::FrameSize kSizes[] = {{80, 24}, {200, 50}};

void add(Tally& tally, const FrameCheck& check, std::string_view where) {
  tally.check(check.ok, "{}: {}", where, check.message);
}

// gemv_coalesced in memory of its own. Frames are those at barriers that all lanes have reached;
// they show the accumulators and the tile of x.
class FramedGemv {
 public:
  FramedGemv(Fixture& fixture, const Problem& problem, float initial)
      : problem_(problem),
        emulation_(gpu_of(fixture.device().info())),
        module_(fixture.build(GemvCoalesced{problem.k, problem.n})),
        y_(emulation_.upload(std::vector<float>(problem.n, initial))),
        a_(emulation_.upload(problem.a)),
        x_(emulation_.upload(problem.x)) {
    ptx::LineMap lines;
    source_ = ptx::print(module_, &lines);
    const ptx::Function& function = module_.functions.front();
    const std::size_t barrier = find_statement(function, ptx::Op::bar_sync, 1);
    if (barrier < function.body.size()) tile_end_ = lines.lines.front()[barrier];
    if (const ptx::Operand* const sum = operand_at(module_, ptx::Op::fma_f32, 0, 0)) {
      accumulator_ = ptx::name_of(module_, function, sum->as_register());
    }
    options_.barriers = true;
    options_.max_frames = 1u << 16;
    options_.watches.push_back({accumulator_});
    for (std::uint64_t first = 0; first < kTile; first += frames::kMaxWatched) {
      options_.watches.push_back({"tile", first, frames::kMaxWatched});
    }
    options_.watches.push_back({"y"});
    options_.buffers.push_back({"y", y_, ptx::Type::f32, problem.n});
  }

  [[nodiscard]] FrameOptions& options() noexcept { return options_; }
  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  [[nodiscard]] const std::string& accumulator() const noexcept { return accumulator_; }
  // The PTX line of the barrier after a tile.
  [[nodiscard]] std::uint32_t tile_end() const noexcept { return tile_end_; }

  // One more launch on the same memory; its frames, the last one after the launch.
  [[nodiscard]] std::vector<Frame> run(Tally& tally) {
    FrameRecorder recorder(emulation_.device(), options_);
    const emulator::Result result =
        emulation_.observe(module_, GemvCoalesced{problem_.k, problem_.n}.geometry(),
                           {y_, a_, x_, problem_.k, problem_.n}, recorder);
    recorder.finish(result);
    tally.check(result.status == emulator::Status::Ok, "{} x {}: {}", problem_.k, problem_.n,
                first_error(result));
    tally.check(recorder.dropped() == 0, "{} frames were dropped", recorder.dropped());
    std::vector<Frame> kept;
    for (const Frame& frame : recorder.frames()) {
      const bool all = frame.finished || frame.active == frame.warps[frame.warp].lanes;
      if (all) kept.push_back(frame);
    }
    return kept;
  }
  [[nodiscard]] std::vector<float> y() const { return emulation_.download<float>(y_, problem_.n); }

 private:
  const Problem& problem_;
  Emulation emulation_;
  ptx::Module module_;
  std::uint64_t y_, a_, x_;
  std::string source_, accumulator_;
  std::uint32_t tile_end_ = 0;
  FrameOptions options_;
};

// A frame as text without y, which another launch may have written.
std::string kernel_state(Frame frame, const std::string& source) {
  if (!frame.finished) frame.watched.pop_back();
  frames::FrameStyle style;
  style.size = {200, 60};
  style.source = source;
  return frames::to_text(frame, style);
}

Outcome isolated_runs(Fixture& fixture, const Line&) {
  Tally tally;
  const Problem problem = random_problem(600, 300, 81);
  FramedGemv gemv(fixture, problem, 0.0f);
  const std::vector<Frame> first = gemv.run(tally);
  const std::vector<float> y = gemv.y();
  const std::vector<Frame> second = gemv.run(tally);
  tally.check(first.size() > 1 && first.size() == second.size(), "{} frames, then {}", first.size(),
              second.size());
  for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    const std::string before = kernel_state(first[i], gemv.source());
    const std::string after = kernel_state(second[i], gemv.source());
    tally.check(before == after, "frame {} (step {}) differs:\n{}{}", i, first[i].number, before,
                after);
  }
  const std::size_t different = different_bits(y, gemv.y());
  tally.check(different == 0, "{} elements of y differ where y was not zeroed between two launches",
              different);
  // The launcher, which keeps modules, workspaces and streams from call to call.
  const Launcher launcher = fixture.launcher();
  const Stream stream(fixture.context());
  const Buffer<f32> device_y(fixture.context(), std::vector<float>(problem.n, 0.0f));
  const Buffer<f32> a(fixture.context(), problem.a);
  const Buffer<f32> x(fixture.context(), problem.x);
  std::vector<float> results[2] = {std::vector<float>(problem.n), std::vector<float>(problem.n)};
  for (std::vector<float>& result : results) {
    launcher.gemv(device_y, a, x, problem.k, problem.n, stream);
    stream.synchronize();
    device_y.read(result);
  }
  tally.check(different_bits(results[0], results[1]) == 0,
              "{} elements differ between two calls of a launcher",
              different_bits(results[0], results[1]));
  tally.figure("{} x {}: {} frames of each launch are equal, {} elements bit for bit", problem.k,
               problem.n, first.size(), problem.n);
  return tally.outcome();
}

// The sums of the first rows, with the bounds of their errors.
struct PartialSums {
  GemvReference reference;
  std::uint32_t rows = 0;
  [[nodiscard]] double bound(std::size_t column) const {
    return gemv_error_bound(reference.magnitude[column], rows) + 0x1p-150 * rows;
  }
};

PartialSums partial_sums(const Problem& problem, std::uint32_t tiles) {
  const std::uint32_t rows = std::min(problem.k, tiles * kTile);
  const std::span<const float> a(problem.a);
  return {gemv_reference(a.first(std::size_t{rows} * problem.n), std::span(problem.x).first(rows),
                         rows, problem.n),
          rows};
}

void check_accumulators(Tally& tally, const Problem& problem, const Frame& frame,
                        const PartialSums& sums) {
  const WatchedValues& values = frame.watched.front();
  tally.check(values.bits.size() == 32, "{} lanes of the accumulator", values.bits.size());
  for (std::size_t lane = 0; lane < values.bits.size(); ++lane) {
    const std::size_t column = frame.block_number * kTile + values.first + lane;
    const double got = frames::value_of(values.bits[lane], values.type);
    const double expected = column < problem.n ? sums.reference.y[column] : 0.0;
    const double bound = column < problem.n ? sums.bound(column) : 0.0;
    tally.check(values.known[lane] && std::abs(got - expected) <= bound,
                "step {}: the sum of column {} after {} rows is {:.9g}, expected {:.9g} +- {:.3g}",
                frame.number, column, sums.rows, got, expected, bound);
  }
}

void check_tile(Tally& tally, const Problem& problem, const Frame& frame, std::uint32_t first_row) {
  for (std::size_t w = 1; w + 1 < frame.watched.size(); ++w) {
    const WatchedValues& values = frame.watched[w];
    for (std::size_t i = 0; i < values.bits.size(); ++i) {
      const std::size_t row = first_row + values.first + i;
      const double expected = row < problem.k ? static_cast<double>(problem.x[row]) : 0.0;
      const double got = frames::value_of(values.bits[i], values.type);
      tally.check(values.known[i] && got == expected,
                  "step {}: tile[{}] is {:.9g}, x[{}] is {:.9g}", frame.number, values.first + i,
                  got, row, expected);
    }
  }
}

Outcome every_element(Fixture& fixture, const Line&) {
  Tally tally;
  const Problem problem = random_problem(600, 300, 82);
  const std::uint32_t tiles = (problem.k + kTile - 1) / kTile;
  std::vector<PartialSums> sums;
  for (std::uint32_t t = 1; t <= tiles; ++t) sums.push_back(partial_sums(problem, t));
  FramedGemv gemv(fixture, problem, std::numeric_limits<float>::quiet_NaN());
  const std::vector<Frame> all = gemv.run(tally);
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> tile_of;  // by block and warp
  std::size_t compared = 0;
  for (const Frame& frame : all) {
    if (frame.finished || frame.line != gemv.tile_end()) continue;
    const std::uint32_t tile = tile_of[{frame.block_number, frame.warp}]++;
    if (!tally.check(tile < tiles, "step {}: more than {} tiles", frame.number, tiles)) break;
    check_accumulators(tally, problem, frame, sums[tile]);
    check_tile(tally, problem, frame, tile * kTile);
    ++compared;
  }
  const std::size_t warps = (problem.n + kTile - 1) / kTile * (kTile / 32);
  tally.check(compared == warps * tiles, "{} frames at the end of a tile, not {}", compared,
              warps * tiles);
  check_gemv(tally, problem, gemv.y(), coalesced_roundings(problem), "gemv_coalesced");
  tally.figure("{} x {}: {} frames, each with 32 sums and a tile of {} elements; {} elements of y",
               problem.k, problem.n, compared, kTile, problem.n);
  return tally.outcome();
}

// The pictures of a frame have their size, and say where it is.
void check_pictures(Tally& tally, const Frame& frame, const std::string& source,
                    std::string_view where) {
  for (const frames::FrameSize size : kSizes) {
    frames::FrameStyle style;
    style.size = size;
    style.source = source;
    const std::string text = frames::to_text(frame, style);
    add(tally, frames::size_is(text, size.width, size.height), where);
    add(tally, frames::contains(text, "> "), where);
    add(tally, frames::contains(text, "bar.sync"), where);
    add(tally, frames::matches(text, "^warp " + std::to_string(frame.warp) + " +#{32} line "),
        where);
    add(tally,
        frames::line_is(text, 1,
                        format_text("gemv_coalesced  step {}  block ({},0,0)  warp {} of 8",
                                    frame.number, frame.block.x, frame.warp)),
        where);
  }
}

// Positive products: the sums rise, and stay below the result.
void check_sums(Tally& tally, const Problem& problem, const std::vector<Frame>& all,
                const std::string& accumulator, std::string_view where) {
  ValueTracker tracker;
  for (const Frame& frame : all) {
    if (!frame.finished) tracker.record(frame);
  }
  const GemvReference reference = gemv_reference(problem.a, problem.x, problem.k, problem.n);
  for (const std::string& name : tracker.names()) {
    const std::size_t colon = name.find(":" + accumulator + "[");
    if (colon == name.npos) continue;
    const std::uint64_t block = std::stoull(name.substr(1));
    const std::uint64_t thread = std::stoull(name.substr(colon + accumulator.size() + 2));
    const std::uint64_t column = block * kTile + thread;
    add(tally, tracker.monotonic(name, ValueTracker::Direction::Rising), where);
    const double limit = column < problem.n ? reference.y[column] * (1 + 1e-3) : 0.0;
    add(tally, tracker.within(name, 0.0, limit), where);
    add(tally, column < problem.n ? tracker.changed(name) : tracker.unchanged(name), where);
  }
}

Outcome boundary_cases(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr std::uint32_t kCases[][2] = {{256, 8},     {16, 256},  {16, 8}, {256, 256},
                                         {4096, 4096}, {257, 255}, {1, 1}};
  std::size_t pictures = 0;
  for (const auto& [k, n] : kCases) {
    const std::string where = format_text("{} x {}", k, n);
    const Problem problem = random_problem(k, n, k + n, 0.1f, 1.0f);
    FramedGemv gemv(fixture, problem, std::numeric_limits<float>::quiet_NaN());
    if (n > kTile) {
      // Frames of the last warp alone; all results are compared.
      gemv.options().one_block = gemv.options().one_warp = true;
      gemv.options().block = n / kTile - 1;
      gemv.options().warp = 7;
    }
    const std::vector<Frame> all = gemv.run(tally);
    const std::size_t tiles = (k + kTile - 1) / kTile;
    const std::size_t expected = (n > kTile ? 1 : 8) * 2 * tiles + 1;
    tally.check(all.size() == expected, "{}: {} frames, not {}", where, all.size(), expected);
    for (const Frame& frame : all) {
      if (frame.finished) continue;
      check_pictures(tally, frame, gemv.source(), where);
      ++pictures;
    }
    check_sums(tally, problem, all, gemv.accumulator(), where);
    const std::string end = frames::to_text(all.back());
    add(tally, frames::contains(end, "the launch has ended"), where);
    add(tally,
        frames::contains(
            end, "y f32 [0] " + frames::value_text(std::bit_cast<std::uint32_t>(gemv.y().front()),
                                                   ptx::Type::f32)),
        where);
    check_gemv(tally, problem, gemv.y(), coalesced_roundings(problem), "gemv_coalesced");
  }
  tally.figure("{} cases, {} frames", std::size(kCases), pictures);
  return tally.outcome();
}

constexpr Line kLines[] = {
    {"2.T1",
     Section::Frames,
     5,
     "runs do not share state",
     "gemv_coalesced twice on the same memory, y not zeroed: every frame and every bit of y are "
     "equal; the same of two calls of a launcher",
     Means::Emulator,
     isolated_runs,
     {"the kernel adds to what y was", accumulate_into_output, nullptr},
     "ptxgen step KERNEL.ptx --frames --barriers"},
    {"2.T2",
     Section::Frames,
     5,
     "every output element is compared in frames",
     "600 x 300, random data: after each tile the sums of all threads and the shared tile against "
     "fp64, then every element of y",
     Means::Emulator,
     every_element,
     {"the indices of A are swapped", swap_indices_of_matrix, nullptr},
     "ptxgen step KERNEL.ptx --watch tile --frames --barriers"},
    {"2.T3",
     Section::Frames,
     5,
     "boundary cases in frames",
     "(K,N) = (256,8) (16,256) (16,8) (256,256) (4096,4096) (257,255) (1,1): pictures of 80 x 24 "
     "and 200 x 50, sums that only rise, every element of y against fp64",
     Means::Emulator,
     boundary_cases,
     {"rows after the last four are not added",
      [](ptx::Module& m) { remove_statement(m, ptx::Op::fma_f32, 4); }, nullptr},
     "ptxgen step KERNEL.ptx --frames --size 80x24"},
};

}  // namespace
}  // namespace framing

std::span<const Line> frame_lines() { return framing::kLines; }

}  // namespace ptxgen::qa
