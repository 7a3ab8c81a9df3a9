// src/kernels/model/predict.cpp - predicted time of a launch
#include "ptxgen/kernels/model/predict.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kernels/model/law.hpp"

namespace ptxgen::inline v0 {

namespace {

// How the blocks of a launch follow one another.
struct Residency {
  double waves = 1;  // blocks that run one after another
  double loads = 1;  // of a thread, one after another
};

Residency residency(const LaunchWork& work, const ptx::Gpu& gpu) noexcept {
  const auto blocks = static_cast<double>(work.blocks);
  const double threads = blocks * work.threads;
  Residency all;
  all.waves = std::max(1.0, blocks / (static_cast<double>(work.blocks_per_sm) * gpu.sms));
  all.loads =
      std::max(1.0, static_cast<double>(work.bytes_read) / (threads * work.bytes_in_flight));
  return all;
}

// Where the bytes of a launch come from and go to.
struct Placement {
  double dram_read = 0;
  double dram_written = 0;
  double l2 = 0;
  [[nodiscard]] double dram() const noexcept { return dram_read + dram_written; }
};

Placement placement(const LaunchWork& work, const GpuRates& rates, bool warm) noexcept {
  const auto read = static_cast<double>(work.bytes_read);
  const auto written = static_cast<double>(work.bytes_written);
  const double span = rates.l2_misses_bytes - rates.l2_fits_bytes;
  const auto missing = [&](double bytes) {
    return span <= 0 ? 1 : std::clamp((bytes - rates.l2_fits_bytes) / span, 0.0, 1.0);
  };
  // Cold: only what is written can stay, until later launches replace it.
  const double read_misses = warm ? missing(read + written) : 1;
  const double write_misses = warm ? read_misses : missing(written);
  Placement at;
  at.dram_read = read * read_misses;
  at.dram_written = written * write_misses;
  at.l2 = read + written - at.dram();
  return at;
}

double boundary_us(const GpuRates& rates, Boundary boundary) noexcept {
  switch (boundary) {
    case Boundary::Stream:
      return rates.stream_us;
    case Boundary::Graph:
      return rates.graph_us;
    case Boundary::Programmatic:
      return model::kProgrammaticUs;
  }
  return 0;
}

std::string_view largest(const LaunchTerms& terms) noexcept {
  struct Named {
    double us;
    std::string_view name;
  };
  const Named all[] = {{terms.dram, "dram"},
                       {terms.latency, "latency"},
                       {terms.l2, "l2"},
                       {terms.blocks, "blocks"},
                       {terms.launch, "launch"}};
  return std::max_element(std::begin(all), std::end(all),
                          [](const Named& a, const Named& b) { return a.us < b.us; })
      ->name;
}

constexpr double kHardlyWritten = 0.05;

Regime regime_of(const Placement& at, bool warm) noexcept {
  if (warm) return Regime::Repeated;
  return at.dram_written > kHardlyWritten * at.dram() ? Regime::Mixed : Regime::Reads;
}

}  // namespace

std::string_view to_string(Boundary boundary) noexcept {
  constexpr std::string_view kNames[] = {"stream", "graph", "programmatic"};
  return kNames[static_cast<std::size_t>(boundary)];
}

std::string_view unproved(Boundary boundary) noexcept {
  if (boundary != Boundary::Programmatic) return {};
  return "the boundary of a programmatic dependent launch rests on two published timings, which "
         "disagree";
}

LaunchPrediction predict(const LaunchWork& work, const GpuRates& rates, const ptx::Gpu& gpu,
                         const PredictOptions& options) {
  const Placement at = placement(work, rates, options.warm);
  const Residency all = residency(work, gpu);
  const double dram_share = at.dram() / std::max(1.0, at.dram() + at.l2);
  const model::DramRates dram =
      model::mixed(rates, at.dram() > 0 ? at.dram_written / at.dram() : 0);
  const double loads = work.bytes_read == 0 ? 0 : all.loads;
  const double each = rates.latency_ns - rates.start_ns;  // of a load in a loop
  const double life = (loads * each + rates.start_ns) * 1e-3;
  LaunchPrediction prediction;
  LaunchTerms& terms = prediction.terms;
  terms.launch = boundary_us(rates, options.boundary);
  terms.blocks = static_cast<double>(work.blocks) * rates.block_ns * 1e-3;
  terms.dram = at.dram() / dram.gb_per_s * 1e-3;
  // The boundary has the life of a block whose load hits the L2.
  const double first = rates.latency_ns * 1e-3;
  const double hit = rates.hit_ns / rates.latency_ns;
  const double cold = loads == 0 ? 0 : dram_share * (1 - hit) * first;
  const double unloaded = std::max(0.0, all.waves * life - first);
  const model::Sequence misses{dram_share * unloaded,
                               dram_share * all.waves * loads * dram.growth_ns * 1e-3};
  const double hits = hit * unloaded;
  terms.latency = misses.us + (1 - dram_share) * hits + cold;
  terms.l2 = at.l2 / rates.l2_gb_per_s * 1e-3;
  const double memory =
      model::under_load(misses, terms.dram) + cold + std::max(terms.l2, (1 - dram_share) * hits);
  prediction.us = terms.launch + model::together(terms.blocks, memory);
  prediction.bound_by = largest(terms);
  prediction.regime = regime_of(at, options.warm);
  prediction.error = error_band(prediction.regime, rates.measured);
  return prediction;
}

LaunchPrediction predict(const LaunchWork& work, const ptx::Gpu& gpu,
                         const PredictOptions& options) {
  return predict(work, rates_of(gpu), gpu, options);
}

}  // namespace ptxgen::inline v0
