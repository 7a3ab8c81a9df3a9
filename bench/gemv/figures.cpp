// bench/gemv/figures.cpp - the quantities that claims are about
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "bench/gemv/claims.hpp"
#include "ptxgen/kernels/gemv/models.hpp"
#include "support/count.hpp"

namespace ptxgen::gemv_bench {

namespace {

using Found = std::optional<Figure>;

// The smallest or largest value of several, with the shape it belongs to.
class Extreme {
 public:
  explicit Extreme(bool max) : max_(max) {}
  void add(double value, std::string where) {
    ++count_;
    if (figure_ && (max_ ? value <= figure_->value : value >= figure_->value)) return;
    figure_.emplace();
    figure_->value = value;
    figure_->where = std::move(where);
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] Found figure() const { return figure_; }

 private:
  bool max_;
  std::size_t count_ = 0;
  Found figure_;
};

const ShapeResult* square(const BenchRun& run, std::uint32_t size) {
  return run.find(GemvLayout::T, ElementType::f32, size, size);
}

Metric metric_of(const ClaimTerm& term) {
  return term.metrics.empty() ? Metric::Chained : term.metrics.front();
}

// The median of an arm in microseconds, 0 if it was not measured. "best-cublas" is the faster of
// the ways to call cuBLAS.
double median(const ShapeResult& shape, const std::string& arm, Metric metric) {
  return arm == "best-cublas" ? shape.best_cublas(metric) : shape.median(arm, metric);
}

bool in_range(const ShapeResult& shape, const ClaimTerm& term) {
  return shape.bytes() >= term.min_bytes && shape.bytes() <= term.max_bytes;
}

// "T f32 64x64", with the metric where the term has several.
std::string place(const ShapeResult& shape, const ClaimTerm& term, Metric metric) {
  std::string name = to_text(shape.problem);
  if (term.metrics.size() > 1) name.append(", ").append(to_string(metric));
  return name;
}

Found time(const BenchRun& run, const ClaimTerm& term) {
  const ShapeResult* const shape = square(run, term.size);
  Figure figure;
  if (shape != nullptr) figure.value = shape->median("planned", metric_of(term));
  if (figure.value == 0) return {};
  figure.us = figure.value;
  return figure;
}

Found rate(const BenchRun& run, const ClaimTerm& term) {
  Found figure = time(run, term);
  if (figure) figure->value = 1e6 / figure->us;
  return figure;
}

Found bandwidth_share(const BenchRun& run, const ClaimTerm& term) {
  Found figure = time(run, term);
  if (!figure || run.machine.datasheet_gb_per_s <= 0) return {};
  figure->base = static_cast<double>(square(run, term.size)->bytes()) / figure->us * 1e-3;
  figure->value = figure->base / run.machine.datasheet_gb_per_s;
  return figure;
}

Found time_over_copy(const BenchRun& run, const ClaimTerm& term) {
  Found figure = time(run, term);
  const Ceiling* const copy = run.ceiling("copy");
  if (!figure || copy == nullptr) return {};
  const auto bytes = static_cast<double>(square(run, term.size)->bytes());
  figure->base = term.factor * bytes / copy->gb_per_s() * 1e-3 + term.plus_us;
  figure->value = figure->us / figure->base;
  return figure;
}

Found used_bytes_share(const BenchRun& run, const ClaimTerm&) {
  constexpr std::uint64_t kSector = 32;
  Extreme worst(false);
  for (const ShapeResult& shape : run.shapes) {
    const ArmResult* const arm = shape.find("planned");
    if (arm == nullptr || !arm->arm.prediction) continue;
    // All bytes of a sector can only be used where rows consist of whole sectors.
    const GemvProblem& problem = shape.problem;
    if (bytes(problem.weights, problem.leading_dimension()) % kSector != 0) continue;
    const auto used =
        static_cast<double>(bytes(problem.weights, std::uint64_t{problem.k} * problem.n));
    const auto loaded = static_cast<double>(arm->arm.prediction->weight_sectors * kSector);
    if (loaded > 0) worst.add(used / loaded, to_text(problem));
  }
  Found figure = worst.figure();
  if (figure) figure->from_clock = false;
  return figure;
}

// Microseconds of all GEMVs of a token; 0 if one of its shapes was not measured.
double token_us(const BenchRun& run, const DecoderModel& model, GemvLayout layout, ElementType type,
                Metric metric) {
  double us = 0;
  for (const DecodeShape& one : decode_shapes(model, false)) {
    const ShapeResult* const shape = run.find(layout, type, one.k, one.n);
    const double each = shape == nullptr ? 0 : shape->median("planned", metric);
    if (each == 0) return 0;
    us += each * one.count;
  }
  return us;
}

Found token_rate(const BenchRun& run, const ClaimTerm& term) {
  const DecoderModel* const model = find_decoder_model(term.model);
  if (model == nullptr) return {};
  Extreme slowest(false);
  for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
      const double us = token_us(run, *model, layout, type, metric_of(term));
      if (us == 0) continue;
      slowest.add(1e6 / us, std::string(to_string(layout)).append(" ").append(to_string(type)));
    }
  }
  Found figure = slowest.figure();
  if (figure) figure->where += " (the slowest of " + std::to_string(slowest.count()) + ")";
  return figure;
}

Found ratio(const BenchRun& run, const ClaimTerm& term) {
  const ShapeResult* const shape = square(run, term.size);
  if (shape == nullptr) return {};
  Figure figure;
  figure.base = median(*shape, term.arm, metric_of(term));
  figure.us = median(*shape, term.over, metric_of(term));
  if (figure.base == 0 || figure.us == 0) return {};
  figure.value = figure.base / figure.us;
  if (term.either_way) figure.value = std::max(figure.value, 1 / figure.value);
  return figure;
}

Found ratio_of_shapes(const BenchRun& run, const ClaimTerm& term) {
  Extreme extreme(term.take == "max");
  std::vector<double> ratios;
  for (const ShapeResult& shape : run.shapes) {
    if (!in_range(shape, term)) continue;
    for (const Metric metric : term.metrics) {
      const double above = median(shape, term.arm, metric);
      const double below = median(shape, term.over, metric);
      if (above == 0 || below == 0) continue;
      ratios.push_back(above / below);
      extreme.add(above / below, place(shape, term, metric));
    }
  }
  if (term.take != "median" || ratios.empty()) return extreme.figure();
  Figure figure;
  figure.value = statistics_of(ratios).median;
  figure.where = count_text(ratios.size(), "problem");
  return figure;
}

Found layout_ratio(const BenchRun& run, const ClaimTerm& term) {
  Extreme worst(true);
  for (const ShapeResult& shape : run.shapes) {
    const GemvProblem& problem = shape.problem;
    if (problem.layout != GemvLayout::T) continue;
    const ShapeResult* const other = run.find(GemvLayout::R, problem.weights, problem.k, problem.n);
    if (other == nullptr) continue;
    const double columns = shape.median("planned", metric_of(term));
    const double rows = other->median("planned", metric_of(term));
    if (columns > 0 && rows > 0) worst.add(columns / rows, to_text(problem));
  }
  return worst.figure();
}

Found prediction_error(const BenchRun& run, const ClaimTerm& term) {
  Extreme worst(true);
  for (const ShapeResult& shape : run.shapes) {
    const ArmResult* const arm = shape.find("planned");
    if (!in_range(shape, term) || arm == nullptr || !arm->arm.prediction) continue;
    for (const Metric metric : term.metrics) {
      const double us = shape.median("planned", metric);
      const double predicted = metric == Metric::Isolated ? arm->arm.prediction->isolated_us
                                                          : arm->arm.prediction->chained_us;
      if (us > 0) worst.add(std::abs(predicted / us - 1), place(shape, term, metric));
    }
  }
  return worst.figure();
}

struct Quantity {
  std::string_view name;
  Found (*figure)(const BenchRun&, const ClaimTerm&);
};
constexpr std::array<Quantity, 10> kQuantities = {{{"time", time},
                                                   {"rate", rate},
                                                   {"bandwidth_share", bandwidth_share},
                                                   {"time_over_copy", time_over_copy},
                                                   {"used_bytes_share", used_bytes_share},
                                                   {"token_rate", token_rate},
                                                   {"ratio", ratio},
                                                   {"ratio_of_shapes", ratio_of_shapes},
                                                   {"layout_ratio", layout_ratio},
                                                   {"prediction_error", prediction_error}}};

const Quantity* find_quantity(std::string_view name) noexcept {
  const auto found = std::find_if(kQuantities.begin(), kQuantities.end(),
                                  [&](const Quantity& one) { return one.name == name; });
  return found == kQuantities.end() ? nullptr : &*found;
}

}  // namespace

bool is_quantity(std::string_view name) noexcept { return find_quantity(name) != nullptr; }

std::optional<Figure> figure_of(const BenchRun& run, const ClaimTerm& term) {
  const Quantity* const quantity = find_quantity(term.quantity);
  return quantity == nullptr ? Found{} : quantity->figure(run, term);
}

}  // namespace ptxgen::gemv_bench
