// src/emulator/memory/warpgroup_queue.cpp - carrying out wgmma instructions
#include <algorithm>
#include <cstring>

#include "emulator/memory/access.hpp"
#include "emulator/memory/warpgroup.hpp"
#include "emulator/race/race.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Type;
using u32 = std::uint32_t;
using Operation = WarpgroupMatrices::Operation;

const WarpgroupDetail& product_of(const Operation& operation) {
  return operation.detail->as<WarpgroupDetail>();
}

/// Elements of a matrix in shared memory, row by row.
std::vector<u32> from_shared(const Cta& cta, std::uint64_t bits, const MatrixView& view) {
  const MatrixDescriptor at = MatrixDescriptor::unpacked(bits);
  const unsigned per_piece = kPieceBytes / view.element_bytes;
  const unsigned row_step = view.transposed ? per_piece : 1;
  const unsigned depth_step = view.transposed ? 1 : per_piece;
  const std::size_t next = view.transposed ? view.depth : 1;
  std::vector<u32> all(std::size_t{view.rows} * view.depth);
  for (unsigned row = 0; row < view.rows; row += row_step) {
    for (unsigned depth = 0; depth < view.depth; depth += depth_step) {
      std::byte piece[kPieceBytes];
      load_bytes(piece, cta.shared + piece_of(at, view, row, depth), kPieceBytes);
      u32* out = all.data() + std::size_t{row} * view.depth + depth;
      for (unsigned i = 0; i < kPieceBytes; i += view.element_bytes, out += next) {
        std::memcpy(out, piece + i, view.element_bytes);
      }
    }
  }
  return all;
}

/// Registers of a frame.
Context context_of_part(const Operation::Part& part) {
  Context context;
  context.frame = part.frame->registers;
  return context;
}

/// The warp's rows of a, as WarpgroupProduct::add takes them, from its registers.
void from_registers(const Operation& operation, const Operation::Part& part, u32* a) {
  const WarpgroupDetail& detail = product_of(operation);
  const unsigned bytes = element_bytes(detail.a_type);
  const unsigned per_register = 4 / bytes;
  const Context context = context_of_part(part);
  for (unsigned index = 0; index < 4; ++index) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const auto word = static_cast<u32>(get_lane(context, operation.detail->sources[index], lane));
      u32* const out =
          a + column_of_a(lane, index, per_register) * kWarpRows + row_of_a(lane, index);
      for (unsigned e = 0; e < per_register; ++e) {
        out[e * kWarpRows] = word >> e * bytes * 8 & ~u32{0} >> (32 - bytes * 8);
      }
    }
  }
}

bool holds_pairs(const WarpgroupDetail& detail) { return detail.d_type == Type::f16; }

/// Element `index` of all lanes' d, in a warp's d as WarpgroupProduct::add takes it.
template <class Work>
void for_each_place(unsigned index, const Work& work) {
  const unsigned column = column_of_d(0, index);
  const unsigned row = row_of_d(0, index);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    work(lane, (column + lane % 4 * 2) * kWarpRows + row + lane / 4);
  }
}

void read_d(const Operation& operation, const Operation::Part& part, u32* d) {
  const WarpgroupDetail& detail = product_of(operation);
  const Context context = context_of_part(part);
  const unsigned elements = detail.columns / 2u;
  const bool pairs = holds_pairs(detail);
  for (unsigned index = 0; index < elements; ++index) {
    const Slot& slot = operation.detail->data[pairs ? index / 2 : index];
    const unsigned shift = pairs ? index % 2 * 16 : 0;
    const u32 mask = pairs ? 0xffffu : ~0u;
    for_each_place(index, [&](unsigned lane, unsigned place) {
      d[place] = static_cast<u32>(get_lane(context, slot, lane)) >> shift & mask;
    });
  }
}

void write_d(const Operation& operation, const Operation::Part& part, const u32* d) {
  const Context context = context_of_part(part);
  const unsigned step = holds_pairs(product_of(operation)) ? 2 : 1;
  for (unsigned i = 0; i < operation.detail->data.size(); ++i) {
    u32 bits[kLanes] = {};
    for (unsigned e = 0; e < step; ++e) {
      for_each_place(i * step + e,
                     [&](unsigned lane, unsigned place) { bits[lane] |= d[place] << e * 16; });
    }
    const Slot& slot = operation.detail->data[i];
    for_each_lane(part.lanes, [&](unsigned lane) { set_lane(context, slot, lane, bits[lane]); });
  }
}

}  // namespace

void carry_out(Context& context, Operation& operation) {
  operation.done = true;
  Cta& cta = *context.cta;
  if (cta.races && operation.valid) {
    cta.races->matrix_read(context, operation.step->statement, operation.pieces, operation.number,
                           kWarpgroupObject + context.warp->index / kWarpgroupWarps);
  }
  if (!operation.valid) return;
  const WarpgroupDetail& detail = product_of(operation);
  const unsigned depth = warpgroup_depth(detail.a_type);
  const unsigned bytes = element_bytes(detail.a_type);
  std::vector<u32> b =
      from_shared(cta, operation.b, {detail.columns, depth, bytes, detail.transpose_b});
  std::vector<u32> a;
  if (!detail.a_in_registers) {
    a = from_shared(cta, operation.a, {kWarpgroupRows, depth, bytes, detail.transpose_a});
  }
  WarpgroupProduct product(detail, b);
  std::vector<u32> own(std::size_t{kWarpRows} * depth);
  std::vector<u32> d(std::size_t{kWarpRows} * detail.columns);
  for (unsigned warp = 0; warp < kWarpgroupWarps; ++warp) {
    const Operation::Part& part = operation.parts[warp];
    if (part.lanes == 0) continue;
    if (detail.a_in_registers) {
      from_registers(operation, part, own.data());
    } else {
      const u32* const rows = a.data() + warp * own.size();
      for (std::size_t i = 0; i < own.size(); ++i) {
        own[i] = rows[i % kWarpRows * depth + i / kWarpRows];
      }
    }
    if (operation.accumulate) {
      read_d(operation, part, d.data());
    } else {
      std::ranges::fill(d, u32{0});
    }
    product.add(own, d);
    write_d(operation, part, d.data());
  }
}

}  // namespace ptxgen::inline v0::emulator
