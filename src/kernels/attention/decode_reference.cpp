// src/kernels/attention/decode_reference.cpp - decode attention in fp64, and its error
#include <algorithm>
#include <cmath>

#include "kernels/attention/decode_layout.hpp"
#include "ptxgen/builder/math.hpp"

namespace ptxgen::inline v0 {

namespace {

/// A row and query head in fp64.
struct Head {
  const AttentionDecode& spec;
  const double* q;
  const double* k;
  const double* v;
  std::size_t begin, end;
  double scale, cap;
};

// How far errors grow: roundings per sum of absolute products, those of a sum over positions.
struct Roundings {
  double score = 0;
  double sum = 0;
};

Roundings roundings_of(const AttentionDecode& spec) {
  const attention::DecodeLayout layout = attention::decode_layout(spec);
  const double exp2 =
      2 * math_bound("exp2", spec.precise ? Accuracy::Precise : Accuracy::Approximate).ulp;
  const double steps = std::ceil(static_cast<double>(spec.chunk_positions()) / layout.tile());
  const double merged =
      std::ceil(static_cast<double>(spec.chunks()) / (attention::kWarps * layout.teams()));
  const double raised = steps + merged + 4;  // a team's steps, its parts; warps and blocks
  Roundings roundings;
  // The dot product's longest path, the query's factor, the step of a block; the differences from
  // the peaks, whose sum is twice the range of the scores.
  roundings.score = layout.values() + 5 + 4 + 4;
  roundings.sum = 2 * (raised * (exp2 + 2) + steps * layout.positions + exp2) + 4;
  return roundings;
}

void attend(const Head& h, const Roundings& roundings, double* y, double* magnitude) {
  const std::size_t d = h.spec.head_size;
  std::vector<double> scores(h.end - h.begin);
  double largest = -INFINITY;
  double products = 0;
  for (std::size_t i = h.begin; i < h.end; ++i) {
    double score = 0;
    double absolute = 0;
    for (std::size_t e = 0; e < d; ++e) {
      const double product = h.q[e] * h.k[i * d + e];
      score += product;
      absolute += std::abs(product);
    }
    score *= h.scale;
    products = std::max(products, absolute * std::abs(h.scale));
    if (h.spec.softcap) score = h.cap * std::tanh(score / h.cap);
    scores[i - h.begin] = score;
    largest = std::max(largest, score);
  }
  double sum = 0;
  for (std::size_t i = h.begin; i < h.end; ++i) {
    const double power = largest == -INFINITY ? 0 : std::exp(scores[i - h.begin] - largest);
    sum += power;
    for (std::size_t e = 0; e < d; ++e) {
      y[e] += power * h.v[i * d + e];
      magnitude[e] += std::abs(power * h.v[i * d + e]);
    }
  }
  // tanh has 2 units in the last place, the product one more rounding.
  const double capped = h.spec.softcap ? 8 * h.cap : 0;
  for (std::size_t e = 0; e < d && sum != 0; ++e) {
    y[e] /= sum;
    magnitude[e] *= (2 * (roundings.score * products + capped) + roundings.sum) / sum;
  }
}

}  // namespace

void Describe<AttentionDecode>::reference(const AttentionDecode& spec, HostOperands& host) {
  HostOperands::Operand& out = host["out"];
  out.magnitude.assign(out.values.size(), 0);
  const Roundings roundings = roundings_of(spec);
  const double passed = host.number("scale");
  const double scale = passed == 0 ? 1 / std::sqrt(static_cast<double>(spec.head_size)) : passed;
  const double cap = spec.softcap ? host.number("cap") : 0;
  const std::size_t heads = static_cast<std::size_t>(spec.heads());
  const std::size_t strip = std::size_t{spec.max_seq} * spec.head_size;
  for (std::size_t row = 0; row < spec.rows; ++row) {
    const double stored = std::min(host.input("lengths")[row], static_cast<double>(spec.max_seq));
    const auto length = static_cast<std::size_t>(stored);
    const std::size_t begin = spec.window == 0 || spec.window > length ? 0 : length - spec.window;
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t kv = (spec.shared_cache ? 0 : row) * spec.kv_heads + head / spec.group;
      const std::size_t at = (row * heads + head) * spec.head_size;
      attend({spec, host.input("q").data() + at, host.input("k").data() + kv * strip,
              host.input("v").data() + kv * strip, begin, length, scale, cap},
             roundings, out.values.data() + at, out.magnitude.data() + at);
    }
  }
}

// Of a weighted mean with weights exp(s): an error e of s is a relative error of e in a weight,
// which counts twice, in the sum of products and in the sum of weights. s has an error of up to
// gamma times the sum of its absolute products, largest over the positions; the weights and sums
// have their own roundings. `magnitude` is the mean of |v| times the number of roundings.
ErrorBound Describe<AttentionDecode>::bound(const AttentionDecode&) {
  return {.relative = 0x1p-24 * 1.01, .absolute = 1e-30};
}

}  // namespace ptxgen::inline v0
