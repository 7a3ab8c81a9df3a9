// bench/gemv/measure.cpp - times arms side by side and checks every launch
#include "bench/gemv/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::gemv_bench {

namespace {

using Clock = std::chrono::steady_clock;
using HostBytes = std::vector<std::uint8_t>;

constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 255) / 256 * 256; }

// Ending a broken capture reports the error a second time.
void give_up_capture(const ptxgen::Stream& stream) {
  try {
    if (stream.capturing()) static_cast<void>(stream.end_capture());
  } catch (const Error& error) {
    if (error.code != "capture") throw;
  }
}

// One arm during its measurement: its outputs and the expected results.
class Runner {
 public:
  Runner(const Context& context, const GemvData& data, Arm arm, const Arm& verify)
      : data_(data),
        verify_(verify),
        stride_(padded(arm.slot_bytes)),
        slots_(context, stride_ * slot_count(arm)),
        single_(context, stride_),
        sums_(context, arm.result == Arm::Result::Copy ? verify.slot_bytes : 0) {
    result_.arm = std::move(arm);
    slots_.fill_bytes(0);
    single_.fill_bytes(0);
  }

  // Launches once on each matrix, compares with fp64 and keeps the results.
  void warm_up(const ptxgen::Stream& stream) {
    spoil(slots_, stream);
    const std::uint64_t matrices = data_.rotation().matrices;
    for (std::uint64_t i = 0; i < matrices; ++i) arm().queue(stream, site(i));
    stream.synchronize();
    const HostBytes all = contents(slots_);
    for (std::uint64_t i = 0; i < matrices && right(); ++i) {
      if (arm().result == Arm::Result::Product) {
        first_.emplace_back(slot(all, i), slot(all, i) + arm().slot_bytes);
        const ProductCheck check = compare(first_.back().data(), i);
        result_.nmse = std::max(result_.nmse, check.nmse);
        result_.worst = std::max(result_.worst, check.worst);
        if (!check.ok()) condemn("the first launch", i, check);
      } else {
        look_at("the first launch", slot(all, i), slots_.address().value + i * stride_, i, nullptr,
                stream);
      }
    }
  }
  void capture(const ptxgen::Stream& stream) {
    stream.begin_capture();
    for (std::uint64_t i = 0; i < data_.rotation().chain; ++i) arm().queue(stream, site(i));
    graph_.emplace(stream.end_capture());
  }

  void isolated(const ptxgen::Stream& stream, const Lead& lead, const Event& begin,
                const Event& end, std::uint64_t matrix, MetricResult& metric) {
    // Otherwise a copy that does nothing would find the right matrix at its destination.
    if (matrix % data_.rotation().matrices == last_matrix_) ++matrix;
    last_matrix_ = matrix % data_.rotation().matrices;
    spoil(single_, stream);
    lead.queue(stream);
    stream.record(begin);
    const ArmSite site{single_.address().value, data_.matrix(matrix), data_.x()};
    (arm().queue_alone ? arm().queue_alone : arm().queue)(stream, site);
    stream.record(end);
    stream.synchronize();
    metric.samples.push_back(double{end.milliseconds_since(begin)} * 1e3);
    const HostBytes bytes = contents(single_);
    look_at("an isolated launch", bytes.data(), single_.address().value, matrix, &metric, stream);
  }
  void chained(const ptxgen::Stream& stream, const Lead& lead, const Event& begin, const Event& end,
               MetricResult& metric) {
    spoil(slots_, stream);
    lead.queue(stream);
    stream.record(begin);
    graph_->launch(stream);
    stream.record(end);
    stream.synchronize();
    metric.samples.push_back(double{end.milliseconds_since(begin)} * 1e3 / data_.rotation().chain);
    look_at_all("a launch of a chain", metric, stream);
  }
  void streamed(const ptxgen::Stream& stream, MetricResult& metric) {
    spoil(slots_, stream);
    stream.synchronize();
    const Clock::time_point begin = Clock::now();
    for (std::uint64_t i = 0; i < data_.rotation().chain; ++i) arm().queue(stream, site(i));
    stream.synchronize();
    const std::chrono::duration<double, std::micro> passed = Clock::now() - begin;
    metric.samples.push_back(passed.count() / data_.rotation().chain);
    look_at_all("a launch in a stream", metric, stream);
  }

  // A library that does not support this problem must not stop the other arms.
  template <class Work>
  void attempt(const Context& context, const ptxgen::Stream& stream, const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      if (context.poisoned()) throw;
      result_.failed = error.message;
      give_up_capture(stream);
    }
  }

  [[nodiscard]] bool right() const noexcept {
    return result_.wrong.empty() && result_.failed.empty();
  }
  void keep(MetricResult metric, bool samples) {
    metric.us = statistics_of(metric.samples);
    if (!samples) metric.samples.clear();
    result_.metrics.push_back(std::move(metric));
  }
  [[nodiscard]] ArmResult take() {
    if (!right()) result_.metrics.clear();
    result_.arm.queue = result_.arm.queue_alone = nullptr;
    return std::move(result_);
  }

 private:
  [[nodiscard]] const Arm& arm() const noexcept { return result_.arm; }
  // Each product of a chain has its own output; copies rotate with their matrices.
  [[nodiscard]] std::uint64_t slot_count(const Arm& arm) const noexcept {
    return arm.result == Arm::Result::Copy ? data_.rotation().matrices : data_.rotation().chain;
  }
  [[nodiscard]] ArmSite site(std::uint64_t i) const noexcept {
    const std::uint64_t at = i % slot_count(arm());
    return {slots_.address().value + at * stride_, data_.matrix(i), data_.x()};
  }
  // Not for copies: their destination holds another matrix, and a large memset would leave dirty
  // lines in the L2.
  void spoil(Buffer<b8>& buffer, const ptxgen::Stream& stream) const {
    if (arm().result != Arm::Result::Copy) buffer.fill_bytes(arm().spoil, &stream);
  }
  [[nodiscard]] HostBytes contents(const Buffer<b8>& buffer) const {
    if (arm().result == Arm::Result::Copy) return {};
    HostBytes bytes(buffer.size());
    buffer.read(bytes);
    return bytes;
  }
  [[nodiscard]] const std::uint8_t* slot(const HostBytes& all, std::uint64_t i) const noexcept {
    return all.empty() ? nullptr : all.data() + i * stride_;
  }
  [[nodiscard]] ProductCheck compare(const std::uint8_t* y, std::uint64_t matrix) const {
    return check_product(data_.problem().y,
                         {reinterpret_cast<const std::byte*>(y), data_.y_bytes()},
                         data_.product(matrix), arm().exactness);
  }

  void look_at_all(const char* what, MetricResult& metric, const ptxgen::Stream& stream) {
    const HostBytes all = contents(slots_);
    for (std::uint64_t i = 0; i < slot_count(arm()) && right(); ++i) {
      look_at(what, slot(all, i), slots_.address().value + i * stride_, i, &metric, stream);
    }
  }
  // The result of one launch: its bytes on the host, or for a copy where it is on the device.
  void look_at(const char* what, const std::uint8_t* bytes, std::uint64_t address,
               std::uint64_t matrix, MetricResult* metric, const ptxgen::Stream& stream) {
    if (metric != nullptr) ++metric->checked;
    if (arm().result == Arm::Result::Product) {
      const HostBytes& first = first_[matrix % first_.size()];
      if (std::memcmp(bytes, first.data(), first.size()) == 0) return;
      if (const ProductCheck check = compare(bytes, matrix); !check.ok()) {
        return condemn(what, matrix, check);
      }
      if (metric != nullptr) ++metric->differing;
      return;
    }
    HostBytes sums;
    if (arm().result == Arm::Result::Copy) {
      verify_.queue(stream, {sums_.address().value, address, 0});
      stream.synchronize();
      sums.resize(sums_.size());
      sums_.read(sums);
    } else {
      sums.assign(bytes, bytes + arm().slot_bytes);
    }
    std::vector<std::uint32_t> words(sums.size() / 4);
    std::memcpy(words.data(), sums.data(), words.size() * 4);
    if (std::accumulate(words.begin(), words.end(), 0u) == data_.word_sum(matrix)) return;
    condemn_text(what, matrix, "its words have another sum");
  }

  void condemn(const char* what, std::uint64_t matrix, const ProductCheck& check) {
    condemn_text(what, matrix,
                 format_text("{} of {} are outside their error bound", check.outside,
                             count_text(data_.problem().n, "output")));
  }
  void condemn_text(const char* what, std::uint64_t matrix, const std::string& how) {
    result_.wrong = format_text("{} with matrix {} of {}: {}", what,
                                matrix % data_.rotation().matrices, data_.rotation().matrices, how);
  }

  const GemvData& data_;
  const Arm& verify_;
  std::uint64_t stride_;
  Buffer<b8> slots_, single_, sums_;
  std::vector<HostBytes> first_;
  std::optional<Graph> graph_;
  std::uint64_t last_matrix_ = ~std::uint64_t{0};
  ArmResult result_;
};

}  // namespace

std::string_view to_string(Metric metric) noexcept {
  switch (metric) {
    case Metric::Isolated:
      return "isolated";
    case Metric::Chained:
      return "chained";
    case Metric::Stream:
      break;
  }
  return "stream";
}

const MetricResult* ArmResult::find(Metric metric) const noexcept {
  for (const MetricResult& one : metrics) {
    if (one.metric == metric) return &one;
  }
  return nullptr;
}

Lead::Lead(const Context& context, const ArmMaker& maker, std::uint64_t bytes)
    : arm_(maker.roofline_arm(bytes)), memory_(context, bytes), sums_(context, arm_.slot_bytes) {
  memory_.fill_bytes(0x55);
}

void Lead::queue(const ptxgen::Stream& stream) const {
  arm_.queue(stream, {sums_.address().value, memory_.address().value, 0});
}

std::vector<ArmResult> measure_arms(const Context& context, const GemvData& data,
                                    std::vector<Arm> arms, const Arm& verify, const Lead& lead,
                                    const MeasureOptions& options) {
  const ptxgen::Stream stream(context);
  const Event begin(context);
  const Event end(context);
  std::vector<Runner> runners;
  runners.reserve(arms.size());
  for (Arm& arm : arms) runners.emplace_back(context, data, std::move(arm), verify);
  lead.queue(stream);
  for (Runner& runner : runners) {
    runner.attempt(context, stream, [&] { runner.warm_up(stream); });
  }

  std::uint64_t next_matrix = 0;
  for (const Metric metric : options.metrics) {
    if (metric == Metric::Chained) {
      for (Runner& runner : runners) {
        if (!runner.right()) continue;
        runner.attempt(context, stream, [&] { runner.capture(stream); });
      }
    }
    std::vector<MetricResult> results(runners.size());
    for (std::size_t sample = 0; sample < options.samples; ++sample) {
      for (std::size_t i = 0; i < runners.size(); ++i) {
        Runner& runner = runners[i];
        results[i].metric = metric;
        if (!runner.right()) continue;
        if (metric == Metric::Isolated) {
          runner.isolated(stream, lead, begin, end, next_matrix++, results[i]);
        } else if (metric == Metric::Chained) {
          runner.chained(stream, lead, begin, end, results[i]);
        } else {
          runner.streamed(stream, results[i]);
        }
      }
    }
    for (std::size_t i = 0; i < runners.size(); ++i) {
      runners[i].keep(std::move(results[i]), options.keep_samples);
    }
  }
  std::vector<ArmResult> done;
  done.reserve(runners.size());
  for (Runner& runner : runners) done.push_back(runner.take());
  return done;
}

}  // namespace ptxgen::gemv_bench
