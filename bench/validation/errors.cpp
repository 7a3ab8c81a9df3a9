// bench/validation/errors.cpp - predictions compared with timings
#include "bench/validation/errors.hpp"

#include <algorithm>
#include <cmath>

#include "cli_common/text_table.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "support/format.hpp"

namespace ptxgen::validation {

namespace {

double gemv_us(const Series& series, const Point& point, const ptx::Gpu& gpu) {
  GemvPlan plan = point.plan ? *point.plan : plan_gemv(point.problem, gpu);
  plan.programmatic = series.options.boundary == Boundary::Programmatic;
  return predict(plan, gpu).chained_us;
}

double predicted(const Series& series, const Point& point, const ptx::Gpu& gpu,
                 const GpuRates& rates) {
  return series.regime == Regime::Gemv ? gemv_us(series, point, gpu)
                                       : predict(point.work, rates, gpu, series.options).us;
}

void add(Errors& errors, double error) {
  ++errors.count;
  errors.mean += std::abs(error);
  errors.bias += error;
  if (std::abs(error) > std::abs(errors.worst)) errors.worst = error;
}

void finish(Errors& errors) {
  const auto count = static_cast<double>(std::max<std::size_t>(errors.count, 1));
  errors.mean /= count;
  errors.bias /= count;
}

std::string percent(double share) { return format_text("{:.1f}", 100 * share); }

std::vector<std::string> cells_of(const Group& group) {
  return {std::string(to_string(group.regime)), group.gpu,
          std::to_string(group.errors.count),   percent(group.errors.mean),
          percent(group.errors.worst),          percent(group.errors.bias),
          percent(group.left_out.mean),         percent(group.left_out.worst)};
}

std::vector<std::string> headings() {
  return {"regime", "GPU", "points", "mean %", "worst %", "bias %", "left out: mean %", "worst %"};
}

}  // namespace

double Compared::error() const noexcept { return predicted_us / point->measured_us - 1; }
double Compared::left_out_error() const noexcept { return left_out_us / point->measured_us - 1; }

std::vector<Compared> compare(const std::vector<Series>& all) {
  std::vector<Compared> compared;
  for (const Series& series : all) {
    const ptx::Gpu gpu = *ptx::find_gpu(series.gpu);
    ptx::Gpu unmeasured = gpu;
    unmeasured.measured = {};
    std::vector<ptx::Gpu> others;
    for (const ptx::Gpu& row : ptx::gpus()) {
      if (row.name != gpu.name) others.push_back(row);
    }
    const GpuRates own = rates_of(gpu);
    const GpuRates left_out = rates_of(unmeasured, others);
    for (const Point& point : series.points) {
      // The planner knows the GPU by its row only.
      compared.push_back(
          {&series, &point, predicted(series, point, gpu, own),
           predicted(series, point, series.regime == Regime::Gemv ? gpu : unmeasured, left_out)});
    }
  }
  return compared;
}

std::vector<Group> groups_of(const std::vector<Compared>& all) {
  std::vector<Group> groups;
  for (const Compared& one : all) {
    const Series& series = *one.series;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return g.regime == series.regime && g.gpu == series.gpu;
    });
    if (group == groups.end()) {
      groups.push_back({series.regime, series.gpu, {}, {}});
      group = groups.end() - 1;
    }
    add(group->errors, one.error());
    add(group->left_out, one.left_out_error());
  }
  for (Group& group : groups) {
    finish(group.errors);
    finish(group.left_out);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.regime < b.regime; });
  return groups;
}

std::string outside_bands(const std::vector<Group>& groups) {
  std::string text;
  for (const Group& group : groups) {
    const auto judge = [&](const Errors& errors, bool measured) {
      const ErrorBand band = error_band(group.regime, measured);
      if (errors.mean <= band.mean && std::abs(errors.worst) <= band.worst) return;
      text += format_text(
          "{} on {}{}: mean {} %, worst {} %; error_band allows {} and {}: fit the law again, or "
          "widen the band in src/kernels/model/predict.cpp\n",
          to_string(group.regime), group.gpu, measured ? "" : " without its own rates",
          percent(errors.mean), percent(errors.worst), percent(band.mean), percent(band.worst));
    };
    judge(group.errors, rates_of(*ptx::find_gpu(group.gpu)).measured);
    if (group.regime != Regime::Gemv) judge(group.left_out, false);
  }
  return text;
}

std::string to_text(const std::vector<Group>& groups) {
  cli::TextTable table(headings());
  for (const Group& group : groups) table.add(cells_of(group));
  std::string text;
  for (std::size_t i = 0; i < table.rows(); ++i) text += table.line(i) + "\n";
  return text;
}

std::string to_markdown(const std::vector<Group>& groups) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += " " + cell + " |";
    return text + "\n";
  };
  std::string text = line(headings()) + "|---|---|---|---|---|---|---|---|\n";
  for (const Group& group : groups) text += line(cells_of(group));
  return text;
}

std::string to_csv(const std::vector<Compared>& all) {
  std::string text = "regime,gpu,series,point,measured_us,predicted_us,left_out_us\n";
  for (const Compared& one : all) {
    text += format_text("{},{},\"{}\",\"{}\",{:.6g},{:.6g},{:.6g}\n", to_string(one.series->regime),
                        one.series->gpu, one.series->name, one.point->label, one.point->measured_us,
                        one.predicted_us, one.left_out_us);
  }
  return text;
}

}  // namespace ptxgen::validation
