// tests/kernels/gemv_grid_run.cpp - points of the grid on the emulator
#include "gemv_grid_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ptx/dice.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "support/half.hpp"

namespace ptxgen::test {
namespace {

constexpr std::uint64_t kGuard = 256;
constexpr std::byte kSentinel{0xa5};
constexpr std::byte kNan{0xff};  // four, or two, make a NaN of every type

std::vector<std::byte> random_list(Dice& dice, ElementType type, std::uint64_t count) {
  std::vector<std::byte> list(static_cast<std::size_t>(count * bytes(type)));
  for (std::size_t i = 0; i < count; ++i) {
    const auto drawn = static_cast<float>(dice.bits() >> 40);  // 24 bits
    set_element(list, type, i, drawn * 0x1p-23f - 1.0f);
  }
  return list;
}

std::size_t weight_index(const GemvProblem& problem, std::size_t i, std::size_t j) {
  const auto lda = static_cast<std::size_t>(problem.leading_dimension());
  return problem.layout == GemvLayout::T ? i * lda + j : j * lda + i;
}

}  // namespace

float element(std::span<const std::byte> list, ElementType type, std::size_t i) {
  if (type == ElementType::f32) {
    float value = 0;
    std::memcpy(&value, list.data() + 4 * i, 4);
    return value;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, list.data() + 2 * i, 2);
  return type == ElementType::f16 ? f16_to_float(half) : bf16_to_float(half);
}

void set_element(std::span<std::byte> list, ElementType type, std::size_t i, float value) {
  if (type == ElementType::f32) {
    std::memcpy(list.data() + 4 * i, &value, 4);
    return;
  }
  const std::uint16_t half = type == ElementType::f16 ? float_to_f16(value) : float_to_bf16(value);
  std::memcpy(list.data() + 2 * i, &half, 2);
}

GemvData make_data(const GemvCase& point) {
  const GemvProblem& problem = point.plan.problem;
  Dice dice(point.seed);
  GemvData data;
  data.a = random_list(dice, problem.weights, problem.matrix_elements());
  data.x = random_list(dice, problem.x, problem.k);
  data.y = random_list(dice, problem.y, problem.n);
  if (problem.bias) data.bias = random_list(dice, problem.y, problem.n);
  if (problem.residual) {
    data.residual = point.residual_is_y ? data.y : random_list(dice, problem.y, problem.n);
  }
  if (problem.scaled) {
    data.alpha = -1.7f;
    data.beta = 0.6f;
  }
  return data;
}

GemvExact exact_gemv(const GemvProblem& problem, const GemvData& data) {
  GemvExact exact{std::vector<double>(problem.n), std::vector<double>(problem.n)};
  for (std::size_t j = 0; j < problem.n; ++j) {
    double sum = 0;
    double magnitude = 0;
    for (std::size_t i = 0; i < problem.k; ++i) {
      const double weight = double{element(data.a, problem.weights, weight_index(problem, i, j))};
      const double product = weight * double{element(data.x, problem.x, i)};
      sum += product;
      magnitude += std::abs(product);
    }
    const auto add = [&](double term) {
      sum += term;
      magnitude += std::abs(term);
    };
    if (problem.scaled) {
      sum *= double{data.alpha};
      magnitude *= std::abs(double{data.alpha});
      add(double{data.beta} * double{element(data.y, problem.y, j)});
    }
    if (problem.bias) add(double{element(data.bias, problem.y, j)});
    if (problem.residual) add(double{element(data.residual, problem.y, j)});
    exact.y[j] = sum;
    exact.magnitude[j] = magnitude;
  }
  return exact;
}

std::vector<std::byte> epilogue(const GemvProblem& problem, const GemvData& data,
                                std::span<const float> sums) {
  std::vector<std::byte> y(std::size_t{problem.n} * bytes(problem.y));
  for (std::size_t j = 0; j < problem.n; ++j) {
    float t = sums[j];
    if (problem.scaled) {
      t = data.alpha * t;
      t = std::fma(data.beta, element(data.y, problem.y, j), t);
    }
    if (problem.bias) t = t + element(data.bias, problem.y, j);
    if (problem.residual) t = t + element(data.residual, problem.y, j);
    set_element(y, problem.y, j, t);
  }
  return y;
}

GemvCase bare(const GemvCase& point) {
  GemvCase result = point;
  GemvProblem& problem = result.plan.problem;
  problem.y = ElementType::f32;
  problem.y_alignment = 16;
  problem.scaled = problem.bias = problem.residual = false;
  result.y_offset = 0;
  result.residual_is_y = false;
  return result;
}

std::vector<float> GemvOutcome::floats() const {
  std::vector<float> values(y.size() / 4);
  std::memcpy(values.data(), y.data(), y.size());
  return values;
}

GemvRunner::GemvRunner(const GemvCase& point, const GemvData& data)
    : GemvRunner(point, data, Gemv{point.plan}.build(ptx::target(point.target)).module()) {}

GemvRunner::GemvRunner(const GemvCase& point, const GemvData& data, const ptx::Module& module)
    : point_(point),
      data_(data),
      device_(emulator::default_gpu(point.target)),
      ptx_(ptx::print(module)),
      program_(emulator::Program::load(device_, module)) {
  const GemvProblem& problem = point_.plan.problem;
  a_ = place("a", data_.a.size(), point.a_offset * bytes(problem.weights));
  put_matrix();
  x_ = place("x", data_.x.size(), point.x_offset * bytes(problem.x));
  if (x_.bytes != 0) device_.write(x_.address, data_.x);
  const std::uint32_t y_offset = point.y_offset * bytes(problem.y);
  y_ = place("y", std::uint64_t{problem.n} * bytes(problem.y), y_offset);
  device_.fill(y_.start, kSentinel, y_.address - y_.start);
  if (problem.bias) {
    bias_ = place("bias", data_.bias.size(), y_offset);
    device_.write(bias_.address, data_.bias);
  }
  if (problem.residual && !point.residual_is_y) {
    residual_ = place("residual", data_.residual.size(), y_offset);
    device_.write(residual_.address, data_.residual);
  }
  if (point.residual_is_y) residual_ = y_;
  for (const Buffer* input : {&a_, &x_, &bias_}) {
    if (input->bytes != 0) device_.protect(input->start);
  }
  if (residual_.bytes != 0 && !point.residual_is_y) device_.protect(residual_.start);
  if (const std::uint64_t size = point.plan.workspace_bytes(); size != 0) {
    workspace_ = place("workspace", size, 0);
    device_.fill(workspace_.start, kSentinel, kGuard);
    device_.fill(workspace_.address, std::byte{0}, point.plan.ticket_bytes());
  }
}

GemvRunner::Buffer GemvRunner::place(const char* name, std::uint64_t bytes, std::uint32_t offset) {
  Buffer buffer;
  buffer.bytes = bytes;
  buffer.start = device_.allocate(kGuard + offset + bytes, name);
  buffer.address = buffer.start + kGuard + offset;
  return buffer;
}

void GemvRunner::put_matrix() {
  const GemvProblem& problem = point_.plan.problem;
  if (problem.repacked) return put_repacked();
  const bool columns = problem.layout == GemvLayout::T;
  const auto size = [&](std::uint64_t elements) {
    return static_cast<std::size_t>(bytes(problem.weights, elements));
  };
  const std::size_t row = size(columns ? problem.n : problem.k);
  const std::size_t step = size(problem.leading_dimension());
  const std::size_t rows = columns ? problem.k : problem.n;
  for (std::size_t i = 0; i < rows && row != 0; ++i) {
    device_.write(a_.address + i * step, std::span(data_.a).subspan(i * step, row));
  }
}

// The bytes between arrays stay as they are.
void GemvRunner::put_repacked() {
  const GemvProblem& problem = point_.plan.problem;
  const std::uint64_t blocks = problem.k / info(problem.weights).block_values;
  const auto fields = repacked_fields(problem.weights);
  for (std::size_t i = 0; i < problem.n; ++i) {
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const std::uint64_t at =
          i * problem.row_bytes() + repacked_offset(problem.weights, problem.k, f);
      device_.write(a_.address + at,
                    std::span(data_.a).subspan(static_cast<std::size_t>(at),
                                               static_cast<std::size_t>(blocks * fields[f].bytes)));
    }
  }
}

void GemvRunner::prepare() {
  const GemvProblem& problem = point_.plan.problem;
  if (problem.scaled || point_.residual_is_y) {
    device_.write(y_.address, data_.y);
  } else if (!fresh_) {
    device_.fill(y_.address, kNan, y_.bytes);
  }
  const std::uint64_t tickets = point_.plan.ticket_bytes();
  if (!fresh_ && workspace_.bytes > tickets) {
    device_.fill(workspace_.address + tickets, kNan, workspace_.bytes - tickets);
  }
  fresh_ = false;
}

void GemvRunner::watch(const Buffer& buffer, const char* name, std::string& findings) const {
  if (buffer.bytes == 0) return;
  std::vector<std::byte> guard(static_cast<std::size_t>(buffer.address - buffer.start));
  device_.read(buffer.start, guard);
  if (std::ranges::any_of(guard, [](std::byte b) { return b != kSentinel; })) {
    findings += std::string("bytes in front of ") + name + " were overwritten\n";
  }
}

GemvOutcome GemvRunner::run(const emulator::Options& options) {
  prepare();
  const auto address = [](const Buffer& buffer) { return DeviceAddress<b8>{buffer.address}; };
  const auto arguments =
      Gemv::KernelType::pack(address(y_), address(a_), address(x_), address(bias_),
                             address(residual_), address(workspace_), data_.alpha, data_.beta);
  const LaunchGeometry geometry = Gemv{point_.plan}.geometry();
  emulator::Launch launch;
  launch.kernel = Gemv::kName;
  launch.grid = {geometry.grid.x, geometry.grid.y, geometry.grid.z};
  launch.block = {geometry.block.x, geometry.block.y, geometry.block.z};
  launch.cluster = {geometry.cluster.x, geometry.cluster.y, geometry.cluster.z};
  launch.dynamic_shared_bytes = geometry.dynamic_shared_bytes;
  launch.parameters = {arguments.data(), arguments.size()};
  emulator::Options all = options;
  all.checks = emulator::RuleSet::all();
  const emulator::Result result = emulator::run(program_, launch, all);
  GemvOutcome built;
  built.counters = result.counters;
  for (const emulator::RunFinding& finding : result.findings) {
    built.findings += emulator::to_text(finding) + "\n";
  }
  if (result.status == emulator::Status::Fault) built.findings += "the launch was stopped\n";
  built.y.resize(static_cast<std::size_t>(y_.bytes));
  device_.read(y_.address, built.y);
  watch(y_, "y", built.findings);
  watch(workspace_, "the workspace", built.findings);
  std::vector<std::byte> tickets(static_cast<std::size_t>(point_.plan.ticket_bytes()));
  if (!tickets.empty()) device_.read(workspace_.address, tickets);
  if (std::ranges::any_of(tickets, [](std::byte b) { return b != std::byte{0}; })) {
    built.findings += "tickets are not 0 after the launch\n";
  }
  return built;
}

}  // namespace ptxgen::test
