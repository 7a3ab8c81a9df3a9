// tests/kernels/flash_run.cpp - attention of many queries on the emulator, and in fp64
#include "flash_run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

#include "ptxgen/kernels/describe.hpp"
#include "ptxgen/kernels/host_values.hpp"

namespace ptxgen::test {
namespace {

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

/// Lengths of a row.
struct Lengths {
  std::size_t keys, queries;
};
Lengths lengths_of(const FlashProblem& p, const FlashData& data, std::size_t row) {
  if (!p.variable) return {p.keys, p.queries};
  return {std::min(data.key_lengths[row], p.keys), std::min(data.query_lengths[row], p.queries)};
}

// Whether query i attends key j.
bool attends(const FlashProblem& p, const Lengths& lengths, std::size_t i, std::size_t j) {
  if (i >= lengths.queries || j >= lengths.keys) return false;
  // Positions counted from the last ones.
  const std::size_t query = lengths.queries - i;
  const std::size_t key = lengths.keys - j;
  if (!p.causal) return true;
  return key >= query && (p.window == 0 || key < query + p.window);
}

void exact_query(const FlashProblem& p, const FlashData& data, std::size_t row, std::size_t head,
                 std::size_t query, std::vector<double>& out) {
  const Lengths lengths = lengths_of(p, data, row);
  const std::size_t d = p.head_size;
  const std::size_t at = query_place(p, row, head, query);
  const double scale = data.scale == 0 ? 1 / std::sqrt(static_cast<double>(d)) : data.scale;
  std::vector<std::pair<std::size_t, double>> scores;
  double peak = -INFINITY;
  for (std::size_t j = 0; j < lengths.keys; ++j) {
    if (!attends(p, lengths, query, j)) continue;
    const std::size_t from = key_place(p, data, row, head / p.group, j);
    double score = 0;
    for (std::size_t e = 0; e < d; ++e) score += data.q[at + e] * data.k[from + e];
    scores.emplace_back(from, score * scale);
    peak = std::max(peak, score * scale);
  }
  double sum = 0;
  for (auto& [from, score] : scores) {
    score = peak == -INFINITY ? 0 : std::exp(score - peak);
    sum += score;
  }
  for (const auto& [from, power] : scores) {
    for (std::size_t e = 0; e < d && sum != 0; ++e) out[at + e] += power / sum * data.v[from + e];
  }
}

}  // namespace

std::size_t query_place(const FlashProblem& p, std::size_t row, std::size_t head,
                        std::size_t query) {
  const std::size_t heads = p.heads();
  return (p.tokens_first ? (row * p.queries + query) * heads + head
                         : (row * heads + head) * p.queries + query) *
         p.head_size;
}

std::size_t key_place(const FlashProblem& p, const FlashData& data, std::size_t row,
                      std::size_t kv_head, std::size_t key) {
  if (p.page == 0) {
    const std::size_t strip = (p.shared_cache ? 0 : row) * p.kv_heads + kv_head;
    return (strip * p.positions() + key) * p.head_size;
  }
  const std::size_t page = data.table[row * p.table_width() + key / p.page];
  return ((page * p.kv_heads + kv_head) * p.page + key % p.page) * p.head_size;
}

FlashData normal_data(const FlashProblem& p, std::uint64_t seed) {
  FlashData data;
  data.q = normal_numbers(p.query_values(), 3 * seed);
  data.k = normal_numbers(p.cache_values(), 3 * seed + 1);
  data.v = normal_numbers(p.cache_values(), 3 * seed + 2);
  data.key_lengths.assign(p.rows, p.keys);
  data.query_lengths.assign(p.rows, p.queries);
  data.table.resize(p.pages);
  std::iota(data.table.begin(), data.table.end(), 0u);
  std::shuffle(data.table.begin(), data.table.end(), std::mt19937_64(seed));
  data.table.resize(std::size_t{p.rows} * p.table_width());
  return data;
}

FlashData as_stored(const FlashProblem& p, const FlashData& data) {
  FlashData stored = data;
  stored.q = rounded(p.type, data.q);
  stored.k = rounded(p.cache, data.k);
  stored.v = rounded(p.cache, data.v);
  return stored;
}

std::vector<double> exact_attention(const FlashProblem& p, const FlashData& data) {
  std::vector<double> out(data.q.size());
  for (std::size_t row = 0; row < p.rows; ++row) {
    for (std::size_t head = 0; head < p.heads(); ++head) {
      for (std::size_t i = 0; i < p.queries; ++i) exact_query(p, data, row, head, i, out);
    }
  }
  return out;
}

FlashRunner::FlashRunner(const KernelDescription& description, const FlashProblem& problem,
                         const LaunchGeometry& geometry, const ptx::Module& module,
                         const FlashData& data, std::string_view target)
    : description_(description),
      problem_(problem),
      geometry_(geometry),
      scale_(data.scale),
      device_(emulator::default_gpu(target)),
      program_(emulator::Program::load(device_, module)) {
  const auto words = [&](const std::vector<std::uint32_t>& values, std::string_view name) {
    const std::uint64_t address = device_.allocate(4 * values.size(), name);
    device_.write(address, std::as_bytes(std::span(values)));
    device_.protect(address);
    return address;
  };
  q_ = device_.allocate(bytes(problem.type, problem.query_values()), "q");
  k_ = device_.allocate(bytes(problem.cache, problem.cache_values()), "k");
  v_ = device_.allocate(bytes(problem.cache, problem.cache_values()), "v");
  out_ = device_.allocate(bytes(problem.type, problem.query_values()), "out");
  if (problem.variable) {
    key_lengths_ = words(data.key_lengths, "key_lengths");
    query_lengths_ = words(data.query_lengths, "query_lengths");
  }
  if (problem.page != 0) table_ = words(data.table, "table");
  write_rows(data);
  for (const std::uint64_t address : {q_, k_, v_}) device_.protect(address);
}

// Queries and keys that exist.
void FlashRunner::write_rows(const FlashData& data) {
  const FlashProblem& p = problem_;
  const std::vector<std::byte> q = to_elements(p.type, data.q);
  const std::vector<std::byte> k = to_elements(p.cache, data.k);
  const std::vector<std::byte> v = to_elements(p.cache, data.v);
  const auto write = [&](std::uint64_t to, ElementType type, const std::vector<std::byte>& from,
                         std::size_t place) {
    const std::size_t at = bytes(type, place);
    device_.write(to + at, std::span(from).subspan(at, bytes(type, p.head_size)));
  };
  for (std::size_t row = 0; row < p.rows; ++row) {
    const Lengths lengths = lengths_of(p, data, row);
    for (std::size_t head = 0; head < p.heads(); ++head) {
      for (std::size_t i = 0; i < lengths.queries; ++i) {
        write(q_, p.type, q, query_place(p, row, head, i));
      }
    }
    for (std::size_t head = 0; head < p.kv_heads; ++head) {
      for (std::size_t j = 0; j < lengths.keys; ++j) {
        write(k_, p.cache, k, key_place(p, data, row, head, j));
        write(v_, p.cache, v, key_place(p, data, row, head, j));
      }
    }
  }
}

void FlashRunner::pack(const void* kernel) {
  FlashOperands operands;
  operands.q = {q_, 1};
  operands.k = {k_, 1};
  operands.v = {v_, 1};
  operands.key_lengths = {key_lengths_, 1};
  operands.query_lengths = {query_lengths_, 1};
  operands.table = {table_, 1};
  operands.out = {out_, 1};
  operands.scale = scale_;
  block_.resize(kMaxArgumentBytes);
  std::uint64_t workspace = 0;
  if (description_.workspace_of != nullptr) {
    const WorkspaceNeed need = description_.workspace_of(kernel);
    if (!need.none()) {
      workspace = device_.allocate(need.tickets + need.parts, "workspace");
      device_.write(workspace, std::vector<std::byte>(need.tickets));
    }
  }
  description_.pack_of(kernel, &operands, workspace, block_.data());
  block_.resize(description_.block_bytes);
}

FlashOutcome FlashRunner::run(const emulator::Options& options) {
  emulator::Launch launch;
  launch.kernel = description_.name;
  launch.grid = {geometry_.grid.x, geometry_.grid.y, geometry_.grid.z};
  launch.block = {geometry_.block.x, 1, 1};
  launch.dynamic_shared_bytes = geometry_.dynamic_shared_bytes;
  launch.parameters = block_;
  emulator::Options all = options;
  all.checks = emulator::RuleSet::all();
  const emulator::Result result = emulator::run(program_, launch, all);
  FlashOutcome outcome;
  outcome.counters = result.counters;
  for (const emulator::RunFinding& finding : result.findings) {
    outcome.findings += emulator::to_text(finding) + "\n";
  }
  outcome.stopped = result.status == emulator::Status::Fault;
  outcome.bits.resize(bytes(problem_.type, problem_.query_values()));
  device_.read(out_, outcome.bits);
  outcome.out = to_values(problem_.type, outcome.bits);
  return outcome;
}

double nmse_of(const std::vector<double>& got, const std::vector<double>& expected) {
  double errors = 0;
  double squares = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(got[i])) return INFINITY;
    errors += (got[i] - expected[i]) * (got[i] - expected[i]);
    squares += expected[i] * expected[i];
  }
  return squares == 0 ? (errors == 0 ? 0 : INFINITY) : errors / squares;
}

}  // namespace ptxgen::test
