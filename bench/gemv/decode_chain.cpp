// bench/gemv/decode_chain.cpp - the GEMVs of one token as one graph
#include "bench/gemv/decode_chain.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

#include "ptxgen/support/error.hpp"
#include "runtime/device/core.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::gemv_bench {

namespace {

constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 255) / 256 * 256; }

std::uint32_t layers_of(const std::vector<ChainShape>& shapes) {
  std::uint32_t layers = 0;
  for (const ChainShape& shape : shapes) layers = std::max(layers, shape.count);
  return layers;
}

std::uint64_t weight_bytes(const std::vector<ChainShape>& shapes) {
  std::uint64_t sum = 0;
  for (const ChainShape& shape : shapes) {
    sum += padded(matrix_bytes(shape.plan.problem)) * shape.count;
  }
  return sum;
}

// All matrices, x, outputs and the product of one shape.
class Weights {
 public:
  Weights(const Context& context, const ArmMaker& maker, const ChainShape& shape,
          std::uint64_t seed)
      : name_(shape.name),
        problem_(shape.plan.problem),
        count_(shape.count),
        stride_(padded(matrix_bytes(problem_))),
        arm_(maker.plan_arm(shape.name, shape.plan)),
        y_stride_(padded(arm_.slot_bytes)),
        a_(context, stride_ * count_),
        y_(context, y_stride_ * count_) {
    const auto a = random_elements(problem_.weights, problem_.matrix_elements(), seed);
    const auto x = random_elements(problem_.x, problem_.k, ~seed);
    reference_ = gemv_reference(problem_, {.a = a, .x = x, .y = {}, .bias = {}, .residual = {}});
    const auto raw = [](const std::vector<std::byte>& bytes) {
      return std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    };
    x_ = Buffer<b8>(context, raw(x));
    // One over the bus, the others on the device.
    const Buffer<b8> first(context, raw(a));
    const Current current(context.core(), Stage::Device);
    for (std::uint32_t i = 0; i < count_; ++i) {
      context.core().call(Stage::Device, &driver::Table::memcpy_within_device,
                          a_.address().value + i * stride_, first.address().value, a.size());
    }
  }

  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  void spoil(const ptxgen::Stream& stream) { y_.fill_bytes(0xff, &stream); }
  void queue(const ptxgen::Stream& stream, std::uint32_t i) const {
    arm_.queue(stream, {y_.address().value + i * y_stride_, a_.address().value + i * stride_,
                        x_.address().value});
  }
  // What is wrong with the outputs, or nothing. All of a shape have the same bits.
  [[nodiscard]] std::string look() {
    std::vector<std::uint8_t> all(y_.size());
    y_.read(all);
    if (first_.empty()) {
      first_.assign(all.data(), all.data() + arm_.slot_bytes);
      const ProductCheck check =
          check_product(problem_.y, std::as_bytes(std::span(first_)), reference_, arm_.exactness);
      if (!check.ok()) return says(0, count_text(check.outside, "output") + " outside their bound");
    }
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (std::memcmp(all.data() + i * y_stride_, first_.data(), first_.size()) != 0) {
        return says(i, "other bits than the first");
      }
    }
    return {};
  }

 private:
  [[nodiscard]] std::string says(std::uint32_t i, const std::string& how) const {
    return format_text("{} of layer {}: {}", name_, i, how);
  }
  std::string name_;
  GemvProblem problem_;
  std::uint32_t count_;
  std::uint64_t stride_;
  Arm arm_;
  std::uint64_t y_stride_;
  Buffer<b8> a_, x_, y_;
  GemvReference reference_;
  std::vector<std::uint8_t> first_;
};

void refuse_too_large(const Context& context, std::uint64_t bytes) {
  const std::uint64_t free = context.memory().free;
  if (bytes <= free / 20 * 19) return;
  throw Error(Stage::Device, "out-of-memory",
              format_text("the weights have {}, and of the device's memory {} are free; measure a "
                          "smaller type or model",
                          count_text(bytes, "byte"), free));
}

}  // namespace

std::vector<std::size_t> chain_order(const std::vector<ChainShape>& shapes) {
  std::vector<std::size_t> order;
  const std::uint32_t layers = layers_of(shapes);
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      if (shapes[i].count == layers) order.push_back(i);
    }
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].count == layers) continue;
    order.insert(order.end(), shapes[i].count, i);
  }
  return order;
}

ChainMeasurement measure_chain(const Device& device, const std::vector<ChainShape>& shapes,
                               std::size_t samples, std::uint64_t lead_bytes, std::uint64_t seed,
                               const Settings& settings) {
  const Context context(device);
  ChainMeasurement found;
  found.weight_bytes = weight_bytes(shapes);
  refuse_too_large(context, found.weight_bytes);
  LauncherOptions launching;
  launching.settings = settings;
  const Launcher launcher(context, launching);
  const ArmMaker maker(context, launcher, settings);
  const Lead lead(context, maker, lead_bytes);
  std::deque<Weights> weights;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    weights.emplace_back(context, maker, shapes[i], seed + i);
  }

  const ptxgen::Stream stream(context);
  const std::vector<std::size_t> order = chain_order(shapes);
  const auto queue_all = [&] {
    std::vector<std::uint32_t> next(shapes.size());
    for (const std::size_t i : order) weights[i].queue(stream, next[i]++);
  };
  const auto look = [&] {
    for (Weights& one : weights) {
      if (found.wrong.empty()) found.wrong = one.look();
      found.checked += one.count();
    }
  };
  // The copies were queued in the default stream.
  context.synchronize();
  for (Weights& one : weights) one.spoil(stream);
  queue_all();
  stream.synchronize();
  look();
  stream.begin_capture();
  queue_all();
  const Graph graph = stream.end_capture();
  found.kernels = static_cast<std::uint32_t>(order.size());

  const Event begin(context);
  const Event end(context);
  std::vector<double> us;
  for (std::size_t i = 0; i < samples && found.wrong.empty(); ++i) {
    for (Weights& one : weights) one.spoil(stream);
    lead.queue(stream);
    stream.record(begin);
    graph.launch(stream);
    stream.record(end);
    stream.synchronize();
    us.push_back(double{end.milliseconds_since(begin)} * 1e3);
    look();
  }
  if (found.wrong.empty()) found.us = statistics_of(us);
  return found;
}

}  // namespace ptxgen::gemv_bench
