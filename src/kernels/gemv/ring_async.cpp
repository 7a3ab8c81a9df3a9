// src/kernels/gemv/ring_async.cpp - weights through a cp.async ring
#include "kernels/gemv/ring_async.hpp"

#include <string>
#include <utility>

namespace ptxgen::inline v0::gemv {

Ring::Ring(Kit& kit, Number steps, std::uint64_t step_bytes, Var<Ptr<b8>>& weights)
    : kit_(kit), steps_(std::move(steps)), step_bytes_(step_bytes), weights_(weights) {}

Ptr<b8, Shared> Ring::place(std::uint32_t slot, std::size_t load) const {
  const std::uint64_t side_by_side = kit_.plan.threads() * kit_.plan.load_bytes;
  return *kit_.ring + (slot * step_bytes(kit_.plan) + load * side_by_side);
}

// One commit group per step, possibly empty, so the wait counts steps.
void Ring::request(std::uint32_t slot, const Pred* p) {
  KernelBuilder& k = kit_.k;
  const auto copy = [&] {
    const std::uint32_t bytes = kit_.plan.load_bytes;
    const ptx::Modifier cache = bytes == 16 ? ptx::Modifier::cg : ptx::Modifier::ca;
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      const Ptr<b8> from = here(weights_) + offsets_[i];
      k.emit(ptx::Op::cp_async,
             {ptx::Modifier::async, cache, ptx::Modifier::shared, ptx::Modifier::global,
              ptx::Modifier::L2_256B},
             {place(slot, i), from, bytes});
    }
    weights_ += step_bytes_;
  };
  if (p == nullptr) {
    copy();
  } else {
    k.guarded(*p, copy);
  }
  k.cp_async_commit_group();
}

// One iteration covers all stages, so each has a constant offset in the code; a segment can end at
// any stage.
void Ring::run(const std::function<void()>& body) {
  KernelBuilder& k = kit_.k;
  const std::uint32_t stages = kit_.plan.stages;
  const std::uint32_t ahead = stages - 1;
  const Value<u32> all = value(k, steps_);
  const std::string end = "ring_end" + std::to_string(kit_.rings++);
  for (std::uint32_t i = 0; i < ahead; ++i) {
    const Pred more = k.setp(Comparison::gt, all, i);
    request(i, &more);
  }
  k.for_(0u, all, stages, [&](Value<u32> first) {
    for (slot_ = 0; slot_ < stages; ++slot_) {
      if (slot_ != 0) {
        const Pred more = first + slot_ < all;
        k.branch_unless(more, Name(end));
      }
      body();
      const Pred more = first + (slot_ + ahead) < all;
      request((slot_ + ahead) % stages, &more);
    }
  });
  k.label(Name(end));
  // No copies are in flight.
  k.cp_async_wait_all();
}

std::vector<Floats> Ring::take() {
  KernelBuilder& k = kit_.k;
  k.cp_async_wait_group(kit_.plan.stages - 2);
  std::vector<Floats> loads;
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    loads.push_back(load_floats(k, place(slot_, i), kit_.problem().weights, kit_.v));
  }
  return loads;
}

}  // namespace ptxgen::inline v0::gemv
