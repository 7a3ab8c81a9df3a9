// src/kernels/parts/staged_copy.cpp - copies to shared memory, several stages ahead
#include "kernels/parts/staged_copy.hpp"

namespace ptxgen::inline v0 {

AsyncStages::AsyncStages(KernelBuilder& k, const Shape& shape, const Ptr<b8, Shared>& first,
                         Var<Ptr<b8>>& from)
    : k_(k), shape_(shape), first_(first), from_(from) {}

Ptr<b8, Shared> AsyncStages::place(std::uint32_t slot, std::size_t load) const {
  return first_ + (slot * shape_.stage_bytes + loads_[load].place);
}

void AsyncStages::copy(std::uint32_t slot, std::size_t load) {
  const std::uint32_t bytes = shape_.load_bytes;
  const ptx::Modifier cache = bytes == 16 ? ptx::Modifier::cg : ptx::Modifier::ca;
  const Ptr<b8> from = from_.view() + loads_[load].offset;
  k_.emit(ptx::Op::cp_async,
          {ptx::Modifier::async, cache, ptx::Modifier::shared, ptx::Modifier::global,
           ptx::Modifier::L2_256B},
          {place(slot, load), from, bytes});
}

// One commit group per step, possibly empty, so the wait counts steps.
void AsyncStages::request(std::uint32_t slot, const Pred& more) {
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    if (!loads_[i].condition) continue;
    const Pred both = more & *loads_[i].condition;
    k_.guarded(both, [&] { copy(slot, i); });
  }
  k_.guarded(more, [&] {
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      if (!loads_[i].condition) copy(slot, i);
    }
    from_ += shape_.step_bytes;
  });
  k_.cp_async_commit_group();
}

// One iteration covers all stages, so each has a constant offset in the code; the steps can end at
// any stage.
void AsyncStages::run(const Value<u32>& steps, const std::string& end,
                      const std::function<void()>& body) {
  const std::uint32_t ahead = shape_.stages - 1;
  for (std::uint32_t i = 0; i < ahead; ++i) request(i, k_.setp(Comparison::gt, steps, i));
  k_.for_(0u, steps, shape_.stages, [&](Value<u32> first) {
    for (slot_ = 0; slot_ < shape_.stages; ++slot_) {
      if (slot_ != 0) {
        const Pred more = first + slot_ < steps;
        k_.branch_unless(more, Name(end));
      }
      body();
      const Pred more = first + (slot_ + ahead) < steps;
      request((slot_ + ahead) % shape_.stages, more);
    }
  });
  k_.label(Name(end));
  k_.cp_async_wait_all();
}

std::vector<Ptr<b8, Shared>> AsyncStages::take() {
  k_.cp_async_wait_group(shape_.stages - 2);
  std::vector<Ptr<b8, Shared>> places;
  for (std::size_t i = 0; i < loads_.size(); ++i) places.push_back(place(slot_, i));
  return places;
}

std::uint64_t AsyncStages::take_stage() {
  k_.cp_async_wait_group(shape_.stages - 2);
  return slot_ * shape_.stage_bytes;
}

BulkStages::BulkStages(KernelBuilder& k, const Place& memory, std::uint32_t stages,
                       std::uint32_t stage_bytes)
    : k_(k),
      stages_(stages),
      stage_bytes_(stage_bytes),
      memory_(memory),
      full_(k.shared<b64>(stages, "full").base().cast<u64>()),
      empty_(k.shared<b64>(stages, "empty").base().cast<u64>()) {}

void BulkStages::start(const Pred& producer, std::uint32_t warps) {
  to_.emplace(k_.var<u32>(0u));
  // Nothing was read yet: the phase before the first counts as read.
  free_.emplace(k_.var<u32>(1u));
  from_.emplace(k_.var<u32>(0u));
  there_.emplace(k_.var<u32>(0u));
  k_.if_(producer, [&] {
    for (std::uint32_t i = 0; i < stages_; ++i) {
      mbarrier_init(k_, full_ + i, 1);
      mbarrier_init(k_, empty_ + i, warps);
    }
    // Before the copies, which use another proxy, access them.
    fence_mbarrier_init(k_);
  });
  k_.bar_sync();
}

Mbarrier BulkStages::at(const Mbarrier& first, const Var<u32>& number) const {
  return first.offset_bytes(k_.mul_lo(number, u64::kBytes));
}

void BulkStages::advance(Var<u32>& number, Var<u32>& parity) {
  number += 1u;
  const Pred wraps = number == stages_;
  k_.guarded(wraps, [&] {
    number = 0u;
    parity ^= 1u;
  });
}

void BulkStages::wait_empty() { mbarrier_wait(k_, at(empty_, *to_), *free_); }
Mbarrier BulkStages::barrier() { return at(full_, *to_); }
BulkStages::Place BulkStages::destination() {
  return memory_.offset_bytes(k_.mul_lo(*to_, stage_bytes_));
}
void BulkStages::sent() { advance(*to_, *free_); }

void BulkStages::wait_full() { mbarrier_wait(k_, at(full_, *from_), *there_); }
BulkStages::Place BulkStages::source() {
  return memory_.offset_bytes(k_.mul_lo(*from_, stage_bytes_));
}
void BulkStages::release(const Value<u32>& lane) {
  k_.bar_warp_sync();
  const Mbarrier read = at(empty_, *from_);
  k_.guarded(lane == 0u, [&] { mbarrier_arrive(k_, read); });
}
void BulkStages::received() { advance(*from_, *there_); }

}  // namespace ptxgen::inline v0
