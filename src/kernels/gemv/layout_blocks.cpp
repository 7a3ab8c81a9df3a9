// src/kernels/gemv/layout_blocks.cpp - sums over rows of blocks
#include <algorithm>

#include "kernels/gemv/block_warp.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

/// One of the warp's copies of a row's step: from global memory to its place in shared memory.
struct Copy {
  std::uint64_t offset;
  std::uint32_t place;
  std::uint32_t lanes;  ///< that take part
};

// Copies of `row_bytes` bytes of each row; a lane's first address is `lane * load_bytes` further.
std::vector<Copy> copies_of(const Kit& kit, std::uint32_t row_bytes, std::uint32_t rows) {
  const BlockFormat& format = *kit.blocks;
  const std::uint32_t width = kit.plan.load_bytes;
  std::vector<Copy> copies;
  // A batch decodes for all lanes: without a row of its own, the upper half of the warp has the
  // last.
  const std::uint32_t together = kit.plan.batch > 1 ? 32 / format.lanes : 1;
  const std::uint32_t slots = (rows + together - 1) / together * together;
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    const std::uint32_t row = std::min(slot, rows - 1);
    for (std::uint32_t panel = 0; panel * format.panel_bytes() < row_bytes; ++panel) {
      const std::uint32_t begin = panel * format.panel_bytes();
      const std::uint32_t end = std::min(row_bytes, begin + format.panel_bytes());
      for (std::uint32_t at = begin; at < end; at += 32 * width) {
        const std::uint32_t lanes = std::min(32u, (end - at + width - 1) / width);
        copies.push_back({row * kit.pitch + at,
                          slot * format.slot_bytes() + at + panel * format.panel_gap, lanes});
      }
    }
  }
  return copies;
}

std::optional<Pred> takes_part(Kit& kit, const Copy& copy) {
  if (copy.lanes == 32) return std::nullopt;
  return *kit.lane < copy.lanes;
}

// A load of `load_bytes` in words, or a half word.
class Loaded {
 public:
  Loaded(Kit& kit, const Ptr<b8>& from, const Copy& copy)
      : kit_(kit), place_(copy.place), p_(takes_part(kit, copy)) {
    const ElementType type = kit.plan.load_bytes == 2 ? ElementType::f16 : ElementType::f32;
    const std::uint32_t count = std::max(1u, kit.plan.load_bytes / 4);
    const Ptr<b8> at = from + copy.offset;
    data_ = p_ ? load_floats_if(kit.k, at, type, count, *p_, kit.weight_load())
               : load_floats(kit.k, at, type, count, kit.weight_load());
  }
  void store() const {
    if (p_) {
      kit_.k.if_(*p_, [&] { put(); });
    } else {
      put();
    }
  }

 private:
  void put() const {
    KernelBuilder& k = kit_.k;
    const Ptr<b8, Shared> to = *kit_.ring + place_;
    if (!data_.pairs.empty()) {
      k.st(to.cast<u16>(), k.cvt<u16>(data_.pairs[0]));
      return;
    }
    const std::vector<Value<f32>>& w = data_.full;
    if (w.size() == 4) {
      k.st(to.cast<f32>(), std::array{w[0], w[1], w[2], w[3]});
    } else if (w.size() == 2) {
      k.st(to.cast<f32>(), std::array{w[0], w[1]});
    } else {
      k.st(to.cast<f32>(), w[0]);
    }
  }
  Kit& kit_;
  std::uint32_t place_;
  std::optional<Pred> p_;
  Floats data_;
};

// Lanes read words: the half after a row's odd number of halves is zero.
void end_words(Kit& kit, std::uint32_t row_bytes) {
  if (row_bytes % 4 == 0) return;
  KernelBuilder& k = kit.k;
  const BlockFormat& format = *kit.blocks;
  const std::uint32_t gaps = (row_bytes - 1) / format.panel_bytes() * format.panel_gap;
  k.if_(*kit.lane == 0u, [&] {
    for (std::uint32_t row = 0; row < kit.plan.warp_outputs(); ++row) {
      const Ptr<b8, Shared> end = *kit.ring + (row * format.slot_bytes() + row_bytes + gaps);
      k.st(end.cast<u16>(), k.constant<u16>(0));
    }
  });
}

// Through registers: all loads, then all stores.
void copy_rows(Kit& kit, const Ptr<b8>& from, std::uint32_t row_bytes, std::uint32_t rows) {
  // The lanes have read the last step. Not after the loads: before sm_90, relocatable code (what
  // nvJitLink makes) has a branch for a barrier of the warp, over which loaded vectors take twice
  // their registers.
  kit.k.bar_warp_sync();
  std::vector<Loaded> loads;
  for (const Copy& copy : copies_of(kit, row_bytes, rows)) loads.emplace_back(kit, from, copy);
  for (const Loaded& load : loads) load.store();
  end_words(kit, row_bytes);
  kit.k.bar_warp_sync();
}

Ptr<b8> rows_at(Kit& kit, const Segment& window) {
  const std::uint64_t step = bytes(kit.problem().weights, kit.plan.step_elements());
  const Ptr<b8> strip =
      moved(kit.k, *kit.weights, window.strip, kit.plan.strip_outputs() * kit.pitch);
  return moved(kit.k, strip, window.first, step);
}

void add_rows(Kit& kit, const Segment& window, std::uint32_t rows, Sums& sums) {
  KernelBuilder& k = kit.k;
  const BlockFormat& format = *kit.blocks;
  const std::uint64_t step = bytes(format.type, kit.plan.step_elements());
  const Number steps = full_steps(kit, window);
  auto weights = k.var(rows_at(kit, window));
  BlockWarp warp(kit, rows, sums);
  // Of a step that begins `stage` bytes into the ring.
  const auto decode_at = [&](std::uint64_t stage) {
    return [&kit, stage](std::uint32_t row, std::uint32_t part) {
      const std::uint64_t at = row * (32 / kit.blocks->lanes) * kit.blocks->slot_bytes();
      return kit.decoder->decode(static_cast<std::uint32_t>(stage + at), part);
    };
  };
  const auto add_step = [&](std::uint64_t stage) {
    warp.add_step(0, decode_at(stage));
    warp.next();
  };
  if (kit.plan.path == GemvPath::Async) {
    AsyncStages stages = async_stages(kit, step, weights);
    for (const Copy& copy : copies_of(kit, format.step_bytes(), rows)) {
      stages.add_load(copy.offset, copy.place, takes_part(kit, copy));
    }
    run_async(kit, stages, steps, [&] {
      const std::uint64_t stage = stages.take_stage();
      // Each lane reads what all have copied, and all have read what the next copies replace.
      k.bar_warp_sync();
      add_step(stage);
    });
  } else {
    repeat(k, steps, [&] {
      copy_rows(kit, weights.view(), format.step_bytes(), rows);
      add_step(0);
      weights += step;
    });
  }
  if_tail(kit, window, [&](std::uint32_t left) {
    copy_rows(kit, weights.view(), static_cast<std::uint32_t>(bytes(format.type, left)), rows);
    warp.add_some(0, left / info(format.type).block_values, decode_at(0));
  });
}

}  // namespace

void request_blocks(Kit& kit, const Segment& segment) {
  if (kit.problem().k == 0) return;
  const Number steps = full_steps(kit, segment);
  if_any(kit.k, steps, [&] {
    if (kit.blocks->repacked) return request_repacked(kit, segment);
    for_rows(kit, segment, [&](std::uint32_t rows) {
      const Ptr<b8> from = rows_at(kit, segment);
      for (const Copy& copy : copies_of(kit, kit.blocks->step_bytes(), rows)) {
        const Ptr<b8> at = from + copy.offset;
        if (const std::optional<Pred> p = takes_part(kit, copy)) {
          kit.k.guarded(*p, [&] { prefetch(kit.k, at); });
        } else {
          prefetch(kit.k, at);
        }
      }
    });
  });
}

namespace {

// x of all rows of the batch.
void stage_rows(Kit& kit, const Segment& window) {
  if (!kit.batch_rows) return stage_x(kit, window, *kit.x, *kit.staged);
  KernelBuilder& k = kit.k;
  const auto row_bytes = static_cast<std::uint32_t>(window_bytes(kit.plan) / kit.plan.batch);
  const Value<u32> rows = k.min(*kit.batch_rows, kit.plan.batch);
  k.for_(0u, rows, 1u, [&](Value<u32> m) {
    const Ptr<b8> x = moved(k, *kit.x, m, kit.x_pitch());
    stage_x(kit, window, x, kit.staged->offset_bytes(k.mul_lo(m, row_bytes)));
  });
}

void add_window(Kit& kit, const Segment& window, bool first, Sums& sums) {
  // Weights come from DRAM while x is staged. A programmatic kernel has asked for the first ones.
  if (!kit.plan.programmatic || !first || may_loop(kit.plan)) request_blocks(kit, window);
  if (kit.has_x) {
    // The lanes have read the last strip's steps.
    kit.k.bar_warp_sync();
  } else {
    // The block has read the last window.
    if (!first || may_loop(kit.plan) || kit.batch_rows) kit.k.bar_sync();
    stage_rows(kit, window);
    kit.k.bar_sync();
  }
  for_rows(kit, window, [&](std::uint32_t rows) {
    if (kit.blocks->repacked) return add_repacked_rows(kit, window, rows, sums);
    add_rows(kit, window, rows, sums);
  });
}

}  // namespace

namespace {

// Each warp has a part of shared memory for the steps of its rows.
void place_stored(Kit& kit, const Ptr<b8, Shared>& memory, const Value<u32>& warp) {
  KernelBuilder& k = kit.k;
  const GemvPlan& plan = kit.plan;
  const std::uint64_t warp_bytes = ring_bytes(plan) / (plan.threads() / 32);
  const Ptr<b8, Shared> own =
      memory.offset_bytes(k.mul_lo(warp, static_cast<std::uint32_t>(warp_bytes)));
  const Value<u32> load = k.mul_lo(*kit.lane, plan.load_bytes);
  kit.ring.emplace(own.offset_bytes(load));
  Ptr<b8, Shared> rows = own;
  if (kit.blocks->lanes < 32) {
    kit.upper.emplace(*kit.lane >= kit.blocks->lanes);
    rows.rebind(own.offset_bytes(k.mul_lo(*kit.lane >> 4u, kit.blocks->slot_bytes())));
  }
  kit.decoder.emplace(k, *kit.blocks, *kit.lane, rows);
  kit.weights.emplace(kit.a->offset_bytes(k.cvt<u64>(load)));
}

}  // namespace

void place_blocks(Kit& kit) {
  KernelBuilder& k = kit.k;
  const GemvPlan& plan = kit.plan;
  kit.blocks = block_format(plan.problem);
  const Ptr<b8, Shared> memory = k.dynamic_shared<b8>().base();
  kit.staged.emplace(memory + ring_bytes(plan));
  const Value<u32> warp = *kit.thread >> 5u;
  if (kit.blocks->repacked) {
    place_repacked(kit);
  } else {
    place_stored(kit, memory, warp);
  }
  kit.across.emplace(*kit.lane);
  kit.out.emplace(*kit.lane);
  if (plan.threads() == 32) return;
  Value<u32> warp_out(warp);
  if (plan.warps_k > 1) {
    kit.warp_k.emplace(quotient(k, warp, 32, plan.warps_out));
    // Arrays of a repacked row have steps of different sizes.
    if (!kit.blocks->repacked) {
      kit.weights->rebind(
          moved(k, *kit.weights, *kit.warp_k, bytes(plan.problem.weights, kit.piece())));
    }
    if (plan.warps_out == 1) return;
    warp_out.rebind(remainder(k, warp, *kit.warp_k, plan.warps_out));
  }
  const std::uint32_t rows_of_warp = plan.warp_outputs();
  const Value<u32> row = rows_of_warp == 1 ? warp_out : k.mul_lo(warp_out, rows_of_warp);
  kit.weights->rebind(moved(k, *kit.weights, warp_out, rows_of_warp * kit.pitch));
  kit.out->rebind(row + *kit.lane);
  kit.row.emplace(row);
}

void keep_x(Kit& kit) {
  const auto steps = static_cast<std::uint32_t>(kit.plan.steps());
  stage_x(kit, {0u, 0u, steps, 0u}, *kit.x, *kit.staged);
  kit.k.bar_sync();
  kit.has_x = true;
}

void accumulate_blocks(Kit& kit, const Segment& segment, Sums& sums) {
  if (kit.problem().k == 0) return;
  KernelBuilder& k = kit.k;
  const std::uint32_t each = window_steps(kit.plan);
  if (max_segment_steps(kit.plan) <= each) {
    // No segment has more steps; this says so to the race gate of a count of run time.
    const Number count = min_of(k, segment.count, each);
    add_window(kit, {segment.strip, segment.first, count, segment.item}, true, sums);
    return;
  }
  const Value<u32> count = value(k, segment.count);
  k.for_(0u, count, each, [&](Value<u32> done) {
    const Value<u32> left = count - done;
    const Segment window{segment.strip, add(k, segment.first, done), k.min(left, each),
                         segment.item};
    add_window(kit, window, false, sums);
  });
}

}  // namespace ptxgen::inline v0::gemv
