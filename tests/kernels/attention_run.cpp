// tests/kernels/attention_run.cpp - decode attention on the emulator, and in fp64
#include "attention_run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>

#include "ptxgen/kernels/describe.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::test {
namespace {

constexpr std::byte kNan{0xff};

std::vector<double> normal_numbers(std::uint64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto uniform = [&] { return (static_cast<double>(random() >> 11u) + 1) * 0x1p-53; };
  std::vector<double> numbers(static_cast<std::size_t>(count));
  for (double& number : numbers) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    number = radius * std::cos(2 * std::numbers::pi * uniform());
  }
  return numbers;
}

std::vector<double> rounded(ElementType type, const std::vector<double>& values) {
  return to_values(type, to_elements(type, values));
}

/// Positions of a row that count.
struct Extent {
  std::size_t begin, end;
};
Extent extent_of(const AttentionDecode& spec, std::uint32_t stored) {
  const std::size_t end = std::min(stored, spec.max_seq);
  return {spec.window == 0 || spec.window > end ? 0 : end - spec.window, end};
}

std::size_t strip_of(const AttentionDecode& spec, std::size_t row, std::size_t kv_head) {
  return (spec.shared_cache ? 0 : row) * spec.kv_heads + kv_head;
}

void exact_head(const AttentionDecode& spec, const AttentionData& data, std::size_t row,
                std::size_t head, AttentionExact& exact) {
  const std::size_t d = spec.head_size;
  const double scale = data.scale == 0 ? 1 / std::sqrt(static_cast<double>(d)) : data.scale;
  const std::size_t at = (row * spec.heads() + head) * d;
  const std::size_t strip = strip_of(spec, row, head / spec.group) * spec.max_seq * d;
  const Extent extent = extent_of(spec, data.lengths[row]);
  std::vector<double> scores;
  double peak = -INFINITY;
  for (std::size_t i = extent.begin; i < extent.end; ++i) {
    double score = 0;
    double sum = 0;
    for (std::size_t e = 0; e < d; ++e) {
      const double product = data.q[at + e] * data.k[strip + i * d + e] * scale;
      score += product;
      sum += std::abs(product);
    }
    exact.largest = std::max(exact.largest, sum);
    if (spec.softcap) score = data.cap * std::tanh(score / double{data.cap});
    scores.push_back(score);
    peak = std::max(peak, score);
  }
  double sum = 0;
  for (const double score : scores) sum += peak == -INFINITY ? 0 : std::exp(score - peak);
  for (std::size_t i = extent.begin; i < extent.end && sum != 0; ++i) {
    const double weight = std::exp(scores[i - extent.begin] - peak) / sum;
    for (std::size_t e = 0; e < d; ++e) {
      exact.out[at + e] += weight * data.v[strip + i * d + e];
      exact.magnitude[at + e] += weight * std::abs(data.v[strip + i * d + e]);
    }
  }
}

}  // namespace

AttentionData normal_data(const AttentionDecode& spec, std::uint64_t seed) {
  AttentionData data;
  data.q = normal_numbers(spec.rows * spec.heads() * spec.head_size, 3 * seed);
  data.k = normal_numbers(spec.cache_values(), 3 * seed + 1);
  data.v = normal_numbers(spec.cache_values(), 3 * seed + 2);
  data.lengths.assign(spec.rows, spec.max_seq);
  return data;
}

AttentionData as_stored(const AttentionDecode& spec, const AttentionData& data) {
  AttentionData stored = data;
  stored.q = rounded(spec.type, data.q);
  stored.k = rounded(spec.cache, data.k);
  stored.v = rounded(spec.cache, data.v);
  return stored;
}

AttentionExact exact_attention(const AttentionDecode& spec, const AttentionData& data) {
  AttentionExact exact;
  exact.out.assign(data.q.size(), 0);
  exact.magnitude.assign(data.q.size(), 0);
  for (std::size_t row = 0; row < spec.rows; ++row) {
    for (std::size_t head = 0; head < spec.heads(); ++head) {
      exact_head(spec, data, row, head, exact);
    }
  }
  return exact;
}

AttentionRunner::AttentionRunner(const AttentionDecode& spec, const AttentionData& data,
                                 std::string_view target)
    : spec_(spec),
      data_(data),
      device_(emulator::default_gpu(target)),
      ptx_(spec.build(ptx::target(target)).ptx()),
      program_(emulator::Program::load(device_, ptx_)) {
  q_ = place("q", to_elements(spec.type, data.q));
  const std::uint64_t cache_bytes = bytes(spec.cache, spec.cache_values());
  k_ = device_.allocate(cache_bytes, "k");
  v_ = device_.allocate(cache_bytes, "v");
  lengths_ = device_.allocate(std::uint64_t{4} * spec.rows, "lengths");
  out_ = device_.allocate(data.q.size() * bytes(spec.type), "out");
  const WorkspaceNeed need = Describe<AttentionDecode>::workspace(spec);
  if (!need.none()) {
    workspace_ = device_.allocate(need.tickets + need.parts, "workspace");
    device_.fill(workspace_, std::byte{0}, need.tickets);
  }
  set_lengths(data.lengths);
  device_.protect(q_);
}

std::uint64_t AttentionRunner::place(std::string_view name, std::span<const std::byte> bytes) {
  const std::uint64_t address = device_.allocate(bytes.size(), name);
  device_.write(address, bytes);
  return address;
}

void AttentionRunner::write_positions(std::uint64_t to, const std::vector<double>& values) {
  const std::vector<std::byte> stored = to_elements(spec_.cache, values);
  const std::size_t pitch = bytes(spec_.cache, spec_.head_size);
  for (std::size_t row = 0; row < spec_.rows; ++row) {
    const Extent extent = extent_of(spec_, data_.lengths[row]);
    for (std::size_t head = 0; head < spec_.kv_heads && extent.begin < extent.end; ++head) {
      const std::size_t first = (strip_of(spec_, row, head) * spec_.max_seq + extent.begin) * pitch;
      device_.write(to + first,
                    std::span(stored).subspan(first, (extent.end - extent.begin) * pitch));
    }
  }
}

void AttentionRunner::set_lengths(const std::vector<std::uint32_t>& lengths) {
  data_.lengths = lengths;
  write_positions(k_, data_.k);
  write_positions(v_, data_.v);
  device_.write(lengths_, std::as_bytes(std::span(lengths)));
}

void AttentionRunner::prepare() {
  const WorkspaceNeed need = Describe<AttentionDecode>::workspace(spec_);
  if (!fresh_) {
    device_.fill(out_, kNan, data_.q.size() * bytes(spec_.type));
    if (need.parts != 0) device_.fill(workspace_ + need.tickets, kNan, need.parts);
  }
  fresh_ = false;
}

AttentionOutcome AttentionRunner::run(const emulator::Options& options) {
  prepare();
  AttentionDecode::Operands operands;
  operands.q = {q_, 1};
  operands.k = {k_, 1};
  operands.v = {v_, 1};
  operands.lengths = {lengths_, 1};
  operands.out = {out_, 1};
  operands.scale = data_.scale;
  operands.cap = data_.cap;
  std::array<std::byte, kMaxArgumentBytes> block{};
  kDescription<AttentionDecode>.pack_of(&spec_, &operands, workspace_, block.data());
  const LaunchGeometry geometry = spec_.geometry();
  emulator::Launch launch;
  launch.kernel = kDescription<AttentionDecode>.name;
  launch.grid = {geometry.grid.x, geometry.grid.y, geometry.grid.z};
  launch.block = {geometry.block.x, 1, 1};
  launch.parameters = {block.data(), kDescription<AttentionDecode>.block_bytes};
  emulator::Options all = options;
  all.checks = emulator::RuleSet::all();
  const emulator::Result result = emulator::run(program_, launch, all);
  AttentionOutcome outcome;
  outcome.counters = result.counters;
  for (const emulator::RunFinding& finding : result.findings) {
    outcome.findings += emulator::to_text(finding) + "\n";
  }
  if (result.status == emulator::Status::Fault) outcome.findings += "the launch was stopped\n";
  outcome.bits.resize(data_.q.size() * bytes(spec_.type));
  device_.read(out_, outcome.bits);
  outcome.out = to_values(spec_.type, outcome.bits);
  std::vector<std::byte> tickets(Describe<AttentionDecode>::workspace(spec_).tickets);
  if (!tickets.empty()) device_.read(workspace_, tickets);
  if (std::ranges::any_of(tickets, [](std::byte b) { return b != std::byte{0}; })) {
    outcome.findings += "tickets are not 0 after the launch\n";
  }
  return outcome;
}

double nmse(const std::vector<double>& got, const std::vector<double>& expected) {
  double errors = 0;
  double squares = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    errors += (got[i] - expected[i]) * (got[i] - expected[i]);
    squares += expected[i] * expected[i];
  }
  return errors / squares;
}

}  // namespace ptxgen::test
