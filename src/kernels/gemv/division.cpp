// src/kernels/gemv/division.cpp - distribution of a GEMV over blocks and SMs
#include <algorithm>
#include <cstddef>

#include "kernels/gemv/model.hpp"
#include "kernels/gemv/partition.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

// A position in the sequence of items; advancing by less than a strip needs no division.
class Place {
 public:
  Place(const GemvPlan& plan, const Items& items)
      : per_strip_(items.per_strip),
        item_elements_(items.steps * plan.step_elements()),
        k_(plan.problem.k),
        n_(plan.problem.n),
        outputs_(plan.strip_outputs()),
        weights_(plan.problem.weights) {}

  void advance(std::uint64_t items) noexcept {
    rest_ += items;
    if (rest_ < per_strip_) return;
    strip_ += rest_ / per_strip_;
    rest_ %= per_strip_;
  }
  [[nodiscard]] std::uint64_t strip() const noexcept { return strip_; }
  [[nodiscard]] bool inside_strip() const noexcept { return rest_ != 0; }
  // Bytes of all weights before the position. Only the last strip may be narrower.
  [[nodiscard]] std::uint64_t bytes_before() const noexcept {
    const std::uint64_t first = strip_ * outputs_;
    if (first >= n_) return bytes(weights_, k_ * n_);
    const std::uint64_t rows = std::min(k_, rest_ * item_elements_);
    return bytes(weights_, first * k_ + std::min(outputs_, n_ - first) * rows);
  }

 private:
  std::uint64_t per_strip_, item_elements_, k_, n_, outputs_;
  ElementType weights_;
  std::uint64_t strip_ = 0;
  std::uint64_t rest_ = 0;
};

// A block has complete items; with chunks, each goes through the workspace.
void count_chunks(Division& division, const GemvPlan& plan, const Items& all) {
  if (plan.chunk_steps == 0 || all.per_strip <= 1) return;
  division.reductions = plan.strips();
  division.parts = all.all;
}

}  // namespace

Division divide(const GemvPlan& plan, std::uint32_t sms) {
  const Items all = items(plan);
  const std::uint64_t blocks = plan.blocks;
  Division division;
  std::vector<std::uint64_t> bytes(sms);
  Place place(plan, all);
  std::uint64_t before = 0;
  std::uint64_t carry = 0;
  std::uint64_t split_strip = ~std::uint64_t{0};  // the last one that a boundary is in
  std::size_t sm = 0;
  for (std::uint64_t b = 0; b < blocks; ++b) {
    const std::uint64_t first_strip = place.strip();
    carry += all.all % blocks;
    const bool more = carry >= blocks;
    if (more) carry -= blocks;
    place.advance(all.all / blocks + (more ? 1 : 0));
    const std::uint64_t now = place.bytes_before();
    bytes[sm] += now - before;
    before = now;
    sm = sm + 1 == sms ? 0 : sm + 1;
    division.pieces += place.strip() - first_strip + (place.inside_strip() ? 1 : 0);
    if (!place.inside_strip()) continue;
    if (split_strip != place.strip()) {
      split_strip = place.strip();
      ++division.reductions;
      ++division.parts;
    }
    ++division.parts;
  }
  division.parts /= plan.cluster;
  if (plan.cluster > 1 && plan.max_parts() <= 1) division.reductions = division.parts = 0;
  count_chunks(division, plan, all);
  division.busiest_bytes = *std::max_element(bytes.begin(), bytes.end());
  return division;
}

Division divide_roughly(const GemvPlan& plan, std::uint32_t sms) {
  const Items all = items(plan);
  Division division;
  const bool split = plan.is_split();
  division.reductions = split ? std::min<std::uint64_t>(plan.strips(), plan.blocks) : 0;
  division.parts = split ? plan.blocks / plan.cluster : 0;
  if (plan.cluster > 1 && plan.max_parts() <= 1) division.reductions = division.parts = 0;
  division.pieces = split ? plan.blocks + plan.strips() : plan.strips();
  const std::uint64_t weights =
      bytes(plan.problem.weights, std::uint64_t{plan.problem.k} * plan.problem.n);
  // Equidistant blocks of a multiprocessor have the same roundings.
  const std::uint64_t each = ceil_div(plan.blocks, sms);
  const std::uint64_t items_of_sm =
      plan.blocks % sms == 0 ? ceil_div(all.all, sms) : ceil_div(all.all, plan.blocks) * each;
  division.busiest_bytes = weights / all.all * items_of_sm;
  return division;
}

}  // namespace ptxgen::inline v0::gemv
