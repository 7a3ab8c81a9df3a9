// src/emulator/decode/memory.cpp - memory, matrix memory and asynchronous rows to steps
#include <algorithm>
#include <string_view>

#include "emulator/decode/decoder.hpp"
#include "emulator/memory/steps.hpp"
#include "emulator/memory/tensor_maps.hpp"
#include "emulator/memory/warpgroup.hpp"
#include "emulator/state/support_table.hpp"
#include "emulator/state/windows.hpp"
#include "emulator/state/written_bits.hpp"
#include "emulator/vector/isa.hpp"
#include "ptx/vector_elements.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// The operands of one instruction by role, without cache hints.
struct Parts {
  std::vector<Slot> results;
  std::vector<Slot> sources;
  std::vector<std::uint64_t> constants;  ///< integers that must be constants, in order
  std::vector<Slot> fragments;           ///< sources in braces, without .v2 and the like
  std::vector<Decoder::Address> addresses;
};

Parts parts_of(Decoder& decoder) {
  Parts result;
  const auto operands = decoder.operands();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const ptx::OperandSpec* const spec =
        ptx::operand_spec(decoder.function(), decoder.instruction(), i);
    if (spec == nullptr) decoder.refuse("its operands do not match its row of the op table");
    if (spec->with == ptx::Field::CacheHint) continue;
    const ptx::Type type = ptx::operand_type(decoder.instruction(), *spec);
    decoder.check_elements(operands[i], *spec);
    switch (spec->role) {
      case ptx::OperandRole::Destination:
        decoder.destinations(operands[i], type, result.results);
        break;
      case ptx::OperandRole::Memory:
        result.addresses.push_back(decoder.address(operands[i]));
        break;
      case ptx::OperandRole::Immediate:
        result.constants.push_back(operands[i].value);
        break;
      default:
        decoder.sources(operands[i], type,
                        spec->vector > 0 || spec->elements != ptx::ElementCount::Fixed
                            ? result.fragments
                            : result.sources);
        break;
    }
  }
  return result;
}

MbarrierDetail mbarrier_detail(const ptx::Instruction& instruction) {
  using Action = MbarrierDetail::Action;
  MbarrierDetail detail;
  detail.relaxed = instruction.get(ptx::Field::Order) == ptx::Modifier::relaxed;
  switch (instruction.op) {
    case ptx::Op::mbarrier_init:
      detail.action = Action::Init;
      break;
    case ptx::Op::mbarrier_inval:
      detail.action = Action::Invalidate;
      break;
    case ptx::Op::mbarrier_expect_tx:
      detail.action = Action::ExpectBytes;
      break;
    case ptx::Op::mbarrier_complete_tx:
      detail.action = Action::CompleteBytes;
      break;
    case ptx::Op::mbarrier_arrive_expect_tx:
      detail.expects_bytes = true;
      break;
    case ptx::Op::mbarrier_arrive_drop:
    case ptx::Op::mbarrier_arrive_drop_count:
    case ptx::Op::mbarrier_arrive_drop_no_complete:
      detail.drop = true;
      break;
    case ptx::Op::mbarrier_arrive_drop_expect_tx:
      detail.drop = detail.expects_bytes = true;
      break;
    case ptx::Op::mbarrier_test_wait_parity:
    case ptx::Op::mbarrier_try_wait_parity:
      detail.parity = true;
      [[fallthrough]];
    case ptx::Op::mbarrier_test_wait:
    case ptx::Op::mbarrier_try_wait:
      detail.action = Action::Test;
      break;
    case ptx::Op::cp_async_mbarrier_arrive:
      detail.action = Action::CopyArrive;
      detail.no_increment = instruction.has(ptx::Field::NoInc);
      break;
    default:
      break;
  }
  return detail;
}

TextureDetail texture_detail(const ptx::Instruction& instruction) {
  using Action = TextureDetail::Action;
  TextureDetail detail;
  const std::string_view mnemonic = ptx::info(instruction.op).mnemonic;
  detail.surface = mnemonic.starts_with("su");
  if (mnemonic == "tld4") detail.action = Action::Gather;
  if (mnemonic == "txq" || mnemonic == "suq") detail.action = Action::Query;
  if (mnemonic == "suld") detail.action = Action::Load;
  if (mnemonic == "sust") detail.action = Action::Store;
  const ptx::Modifier geometry = instruction.get(ptx::Field::TextureGeometry);
  detail.layered = geometry == ptx::Modifier::dim_a1d || geometry == ptx::Modifier::dim_a2d;
  if (geometry == ptx::Modifier::dim_2d || geometry == ptx::Modifier::dim_a2d) {
    detail.dimensions = 2;
  } else if (geometry == ptx::Modifier::dim_3d) {
    detail.dimensions = 3;
  }
  switch (instruction.get(ptx::Field::TextureComponent)) {
    case ptx::Modifier::g:
      detail.component = 1;
      break;
    case ptx::Modifier::b:
      detail.component = 2;
      break;
    case ptx::Modifier::a:
      detail.component = 3;
      break;
    default:
      break;
  }
  detail.type = instruction.type(0);
  detail.integer = !detail.surface && instruction.type(1) == ptx::Type::s32;
  detail.query = instruction.get(ptx::Field::TextureQuery);
  detail.boundary = instruction.get(ptx::Field::SurfaceBoundary);
  return detail;
}

}  // namespace

/// Decodes one instruction of the rows that touch memory.
class MemoryDecoder {
 public:
  explicit MemoryDecoder(Decoder& decoder)
      : decoder_(decoder), instruction_(decoder.instruction()), parts_(parts_of(decoder)) {
    detail_.order = instruction_.get(ptx::Field::Order);
    detail_.scope = instruction_.get(ptx::Field::Scope);
    detail_.element_bytes = static_cast<std::uint8_t>(ptx::bytes(instruction_.type(0)));
    detail_.elements = static_cast<std::uint8_t>(ptx::vector_elements(instruction_));
  }

  void decode() {
    const std::string_view mnemonic = ptx::info(instruction_.op).mnemonic;
    if (execution_of(instruction_.op) == Execution::Refused) refuse();
    if (instruction_.op == ptx::Op::st_async) return store_async();
    if (mnemonic == "ld" || mnemonic == "ldu") return load();
    if (mnemonic == "st") return store();
    if (mnemonic == "atom" || mnemonic == "red") return atomic();
    if (mnemonic == "cvta" || mnemonic == "isspacep" || mnemonic == "createpolicy") {
      return address();
    }
    if (mnemonic == "mapa" || mnemonic == "getctarank") return peer();
    if (mnemonic == "fence" || mnemonic == "membar") return fence();
    if (mnemonic == "mbarrier") return barrier();
    if (mnemonic == "cp") return copy();
    if (mnemonic == "wgmma") return warpgroup();
    if (mnemonic == "tensormap") return tensor_map();
    if (instruction_.op >= ptx::Op::tex && instruction_.op <= ptx::Op::suq_opaque) {
      return texture();
    }
    if (execution_of(instruction_.op) == Execution::MatrixMemory) return matrix();
    refuse();
  }

 private:
  static AddressOperand operand(const Decoder::Address& address) {
    return {address.base, address.offset};
  }

  /// The first address operand; its space is that of the instruction, else that of the symbol.
  void take_address(const Decoder::Address& address) {
    detail_.address = operand(address);
    detail_.symbol = address.symbol;
    detail_.space = ptx::space_of(instruction_.get(ptx::Field::Space));
    // Without a space an address is generic, but a symbol has a known space.
    if (detail_.space == ptx::Space::Generic) detail_.space = address.space;
    if (address.function_param) {
      detail_.space = ptx::Space::Local;
      detail_.is_param = true;
    } else if (detail_.space == ptx::Space::Param && !decoder_.function().entry) {
      detail_.space = ptx::Space::Local;
      detail_.is_param = true;
    }
    detail_.cluster = instruction_.get(ptx::Field::Space) == ptx::Modifier::shared_cluster ||
                      detail_.space == ptx::Space::Generic;
    detail_.uncounted = detail_.space == ptx::Space::Const || detail_.is_param;
  }

  Step finish(Handler run) {
    const bool counts = detail_.space != ptx::Space::Param && !detail_.is_param;
    if (counts) detail_.counter = decoder_.new_memory_counter();
    Step step = decoder_.step();
    step.run = run;
    step.detail = static_cast<std::uint32_t>(decoder_.code().memory.size());
    step.source[1] = detail_.counter;
    detail_.statement = step.statement;
    if (detail_.address.base.present()) step.source[0] = detail_.address.base.offset;
    decoder_.code().memory.push_back(std::move(detail_));
    step.immediate = reinterpret_cast<std::uintptr_t>(&decoder_.code().memory.back());
    return step;
  }

  /// A handler of vector/memory_hot.cpp, or nullptr.
  Handler hot(bool is_store) {
    const bool global = detail_.space == ptx::Space::Global ||
                        detail_.space == ptx::Space::Generic ||
                        (detail_.space == ptx::Space::Const && !is_store);
    if (!global && detail_.space != ptx::Space::Shared) return nullptr;
    // Relaxed and stronger accesses let other warps run.
    if (detail_.order != ptx::Modifier::none && detail_.order != ptx::Modifier::weak) {
      return nullptr;
    }
    if (detail_.data.size() > std::size(detail_.registers.offset)) return nullptr;
    for (std::size_t i = 0; i < detail_.data.size(); ++i) {
      const Slot& slot = detail_.data[i];
      if (!slot.present() || slot.lane_bytes != detail_.data[0].lane_bytes ||
          slot.register_bits != detail_.data[0].register_bits) {
        return nullptr;
      }
      // The general handler runs vectors that load a register twice.
      for (std::size_t k = 0; !is_store && k < i; ++k) {
        if (detail_.data[k].offset == slot.offset) return nullptr;
      }
      detail_.registers.offset[i] = slot.offset;
    }
    if (!detail_.address.base.present()) {
      // A known address: the same in all lanes.
      detail_.address = {decoder_.constant(detail_.address.offset, 64), 0};
    }
    const Slot& first = detail_.data.front();
    detail_.registers.mask =
        first.register_bits >= 32 ? 0xffffffffu : (std::uint32_t{1} << first.register_bits) - 1;
    HotAccess access;
    access.store = is_store;
    access.shared = detail_.space == ptx::Space::Shared;
    access.element_bytes = detail_.element_bytes;
    access.elements = detail_.elements;
    access.lane_bytes = first.lane_bytes;
    access.is_signed = first.is_signed && first.register_bits > detail_.element_bytes * 8u;
    access.base_is_64bit = detail_.address.base.lane_bytes == 8;
    return handlers(best_isa()).memory(access);
  }

  void load() {
    take_address(parts_.addresses.at(0));
    detail_.reads = true;
    detail_.data = std::move(parts_.results);
    const Decoder::Deciding deciding = decoder_.deciding_results();
    detail_.required.local_elements = deciding.in_thread;
    detail_.required.elements = deciding.anywhere;
    if (detail_.space == ptx::Space::Param && !detail_.address.base.present()) {
      return decoder_.add(finish(&run_load_parameter));
    }
    const unsigned bytes = unsigned{detail_.element_bytes} * detail_.elements;
    const auto all = static_cast<std::uint32_t>(low_mask(std::min(bytes, 32u)));
    const std::uint32_t used = decoder_.used_bytes() & all;
    if (used != 0 && used != all) {
      detail_.required.used = used;
      return decoder_.add(finish(&run_load));
    }
    const Handler fast = hot(false);
    decoder_.add(finish(fast != nullptr ? fast : &run_load));
  }

  void store() {
    take_address(parts_.addresses.at(0));
    detail_.writes = true;
    detail_.data = std::move(parts_.sources);
    const Handler fast = hot(true);
    decoder_.add(finish(fast != nullptr ? fast : &run_store));
  }

  void atomic() {
    take_address(parts_.addresses.at(0));
    detail_.reads = detail_.writes = true;
    detail_.data = std::move(parts_.results);
    detail_.sources = std::move(parts_.sources);
    detail_.kind = AtomicDetail{instruction_.get(ptx::Field::AtomicOp), instruction_.type(0)};
    decoder_.add(finish(&run_atomic));
  }

  /// Rows without an access to memory.
  void address() {
    detail_.data = std::move(parts_.results);
    detail_.sources = std::move(parts_.sources);
    detail_.space = ptx::space_of(instruction_.get(ptx::Field::Space));
    if (detail_.space == ptx::Space::Param && !decoder_.function().entry) {
      detail_.space = ptx::Space::Local;
    }
    detail_.cluster = instruction_.get(ptx::Field::Space) == ptx::Modifier::shared_cluster;
    const bool converts = instruction_.op == ptx::Op::cvta || instruction_.op == ptx::Op::cvta_to;
    if (converts && window_start(detail_.space) == 0 && detail_.data[0].lane_bytes == 8 &&
        detail_.sources[0].lane_bytes == 8) {
      // Global and constant addresses equal their generic addresses.
      Step move = decoder_.step();
      move.run = handlers(best_isa()).alu(Alu::Mov64);
      move.result = detail_.data[0].offset;
      move.source.fill(detail_.sources[0].offset);
      return decoder_.add(move);
    }
    Handler run = &run_policy;
    if (instruction_.op == ptx::Op::cvta) run = &run_to_generic;
    if (instruction_.op == ptx::Op::cvta_to) run = &run_from_generic;
    if (instruction_.op == ptx::Op::isspacep) run = &run_is_space;
    plain(run);
  }

  void fence() {
    if (instruction_.op == ptx::Op::fence_proxy &&
        instruction_.get(ptx::Field::ProxyKind) == ptx::Modifier::async &&
        instruction_.get(ptx::Field::Space) != ptx::Modifier::global) {
      return plain(&run_proxy_fence);
    }
    if (instruction_.op == ptx::Op::fence_proxy_tensormap_release) {
      return plain(&run_release_maps);
    }
    if (instruction_.op == ptx::Op::fence_proxy_tensormap_acquire) {
      take_address(parts_.addresses.at(0));
      return plain(&run_acquire_map);
    }
    // The emulator already orders what other fences between proxies, and of mbarrier.init in a
    // cluster, would order.
    if (instruction_.op != ptx::Op::fence && instruction_.op != ptx::Op::membar) return;
    if (instruction_.op == ptx::Op::membar) {
      // PTX ISA, membar: .cta, .gl, .sys are fence.sc.cta, .gpu, .sys.
      detail_.order = ptx::Modifier::sc;
      if (detail_.scope == ptx::Modifier::gl) detail_.scope = ptx::Modifier::gpu;
    } else if (detail_.order == ptx::Modifier::none) {
      detail_.order = ptx::Modifier::acq_rel;
    }
    plain(&run_fence);
  }

  /// The access to the object itself is relaxed; MbarrierDetail says what the operation orders.
  void barrier() {
    if (instruction_.op == ptx::Op::mbarrier_pending_count) {
      detail_.data = std::move(parts_.results);
      detail_.sources = std::move(parts_.sources);
      return plain(&run_pending_count);
    }
    take_address(parts_.addresses.at(0));
    detail_.kind = mbarrier_detail(instruction_);
    detail_.order = ptx::Modifier::relaxed;
    detail_.scope = ptx::Modifier::cta;
    detail_.element_bytes = 8;
    detail_.reads = detail_.writes = true;
    detail_.data = std::move(parts_.results);
    detail_.sources = std::move(parts_.sources);
    decoder_.add(finish(&run_mbarrier));
  }

  void copy() {
    switch (instruction_.op) {
      case ptx::Op::cp_async:
      case ptx::Op::cp_async_src_size:
      case ptx::Op::cp_async_ignore_src: {
        take_address(parts_.addresses.at(0));
        detail_.kind = AsyncCopyDetail{operand(parts_.addresses.at(1))};
        const std::uint64_t bytes = parts_.constants.at(0);
        if (bytes != 4 && bytes != 8 && bytes != 16) {
          decoder_.refuse(format_text("it copies {} bytes; 4, 8 and 16 are allowed", bytes));
        }
        detail_.element_bytes = static_cast<std::uint8_t>(bytes);
        detail_.reads = detail_.writes = true;
        detail_.sources = std::move(parts_.sources);
        return decoder_.add(finish(&run_copy_async));
      }
      case ptx::Op::cp_async_bulk_load:
      case ptx::Op::cp_async_bulk_load_cta:
      case ptx::Op::cp_async_bulk_shared:
      case ptx::Op::cp_async_bulk_store:
        return bulk_copy();
      case ptx::Op::cp_async_bulk_tensor_load:
      case ptx::Op::cp_async_bulk_tensor_store:
      case ptx::Op::cp_reduce_async_bulk_tensor:
        return tensor_copy();
      case ptx::Op::cp_async_bulk_prefetch:
      case ptx::Op::cp_async_bulk_prefetch_tensor:
        return;  // the emulator has no caches
      case ptx::Op::cp_async_bulk_commit_group:
        return plain(&run_commit_bulk);
      case ptx::Op::cp_async_bulk_wait_group:
        detail_.kind = WaitGroupDetail{parts_.constants.at(0), false};
        return plain(&run_wait_bulk);
      case ptx::Op::cp_async_commit_group:
        return plain(&run_commit_group);
      case ptx::Op::cp_async_wait_group:
        detail_.kind = WaitGroupDetail{parts_.constants.at(0), false};
        return plain(&run_wait_group);
      case ptx::Op::cp_async_wait_all:
        detail_.kind = WaitGroupDetail{0, true};
        return plain(&run_wait_group);
      case ptx::Op::cp_async_mbarrier_arrive:
        return barrier();
      default:
        refuse();
    }
  }

  void bulk_copy() {
    take_address(parts_.addresses.at(0));
    const bool store = instruction_.op == ptx::Op::cp_async_bulk_store;
    if (store && instruction_.has(ptx::Field::CopyMask)) {
      decoder_.refuse("the emulator does not support byte masks of bulk copies");
    }
    BulkDetail bulk;
    bulk.kind = store                                              ? BulkDetail::Kind::Store
                : instruction_.op == ptx::Op::cp_async_bulk_shared ? BulkDetail::Kind::Peer
                                                                   : BulkDetail::Kind::Load;
    bulk.from = operand(parts_.addresses.at(1));
    if (!store) bulk.barrier = operand(parts_.addresses.at(2));
    bulk.bytes = parts_.sources.at(0);
    if (!store && parts_.sources.size() > 1) bulk.ranks = parts_.sources[1];
    detail_.kind = bulk;
    detail_.element_bytes = 16;
    detail_.reads = detail_.writes = true;
    decoder_.add(finish(&run_copy_bulk));
  }

  void tensor_copy() {
    TensorDetail tensor;
    tensor.load = instruction_.op == ptx::Op::cp_async_bulk_tensor_load;
    // `[shared], [map], [mbarrier]`, or `[map], [shared]`.
    take_address(parts_.addresses.at(tensor.load ? 0 : 1));
    tensor.map = operand(parts_.addresses.at(tensor.load ? 1 : 0));
    detail_.space = ptx::Space::Shared;
    detail_.cluster = tensor.load && detail_.cluster;
    if (tensor.load) tensor.barrier = operand(parts_.addresses.at(2));
    tensor.reduction = instruction_.get(ptx::Field::AtomicOp);
    tensor.dimensions = static_cast<std::uint8_t>(parts_.fragments.size());
    std::copy(parts_.fragments.begin(), parts_.fragments.end(), tensor.coordinates.begin());
    if (!parts_.sources.empty()) tensor.ranks = parts_.sources[0];
    detail_.kind = tensor;
    detail_.element_bytes = 16;
    detail_.reads = detail_.writes = true;
    decoder_.add(finish(&run_copy_tensor));
  }

  void tensor_map() {
    take_address(parts_.addresses.at(0));
    detail_.reads = detail_.writes = true;
    TensorMapDetail map;
    if (instruction_.op == ptx::Op::tensormap_cp_fenceproxy) {
      map.from = operand(parts_.addresses.at(1));
      detail_.kind = map;
      return decoder_.add(finish(&run_copy_map));
    }
    map.field = instruction_.get(ptx::Field::TensorMapField);
    if (!parts_.constants.empty()) {
      map.ordinal = static_cast<std::uint32_t>(parts_.constants[0]);
      map.value = parts_.constants[0];
    }
    if (instruction_.op == ptx::Op::tensormap_replace_mode) {
      map.ordinal = 0;
      refuse_mode(map.field, map.value);
    }
    detail_.sources = std::move(parts_.sources);
    detail_.kind = map;
    decoder_.add(finish(&run_replace_map));
  }

  /// Numbers of tensormap.replace for what the emulator does not have.
  void refuse_mode(ptx::Modifier field, std::uint64_t value) {
    if (field == ptx::Modifier::elemtype && value > 12) {
      decoder_.refuse(
          "packed elements of 4 and 6 bits are not supported by the emulator; use .elemtype 0, u8");
    }
    if (field == ptx::Modifier::interleave_layout && value != 0) {
      decoder_.refuse(
          "interleaved tensor maps are not supported by the emulator; use .interleave_layout 0");
    }
    if (field == ptx::Modifier::swizzle_mode && value > 3) {
      decoder_.refuse(
          "the 96-byte swizzle is not supported by the emulator; use .swizzle_mode 3, 128 bytes");
    }
    if (field == ptx::Modifier::swizzle_atomicity && value != 0) {
      decoder_.refuse(
          "swizzles with atoms of 32 and 64 bytes are not supported by the emulator; use "
          ".swizzle_atomicity 0");
    }
  }

  void store_async() {
    take_address(parts_.addresses.at(0));
    detail_.cluster = true;
    detail_.space = ptx::Space::Shared;
    BulkDetail bulk;
    bulk.kind = BulkDetail::Kind::Value;
    bulk.barrier = operand(parts_.addresses.at(1));
    detail_.kind = bulk;
    detail_.writes = true;
    detail_.data = std::move(parts_.sources);
    if (detail_.data.empty()) detail_.data = std::move(parts_.fragments);
    decoder_.add(finish(&run_store_async));
  }

  void warpgroup() {
    switch (instruction_.op) {
      case ptx::Op::wgmma_fence:
        return plain(&run_warpgroup_fence);
      case ptx::Op::wgmma_commit_group:
        return plain(&run_warpgroup_commit);
      case ptx::Op::wgmma_wait_group:
        detail_.kind = WaitGroupDetail{parts_.constants.at(0), false};
        return plain(&run_warpgroup_wait);
      default:
        return warpgroup_product();
    }
  }

  void warpgroup_product() {
    WarpgroupDetail product;
    product.a_in_registers = !parts_.fragments.empty();
    product.columns = static_cast<std::uint16_t>(warpgroup_columns());
    product.d_type = instruction_.type(0);
    product.a_type = instruction_.type(1);
    product.b_type = instruction_.type(2);
    product.saturate = instruction_.has(ptx::Field::SaturateFinite);
    // The constants: the signs of a and b, then whether a (not in registers) and b are transposed.
    const std::vector<std::uint64_t>& constants = parts_.constants;
    if (constants.size() >= 2) {
      product.negate_a = static_cast<std::int64_t>(constants[0]) < 0;
      product.negate_b = static_cast<std::int64_t>(constants[1]) < 0;
    }
    if (constants.size() > 2) {
      product.transpose_b = constants.back() != 0;
      product.transpose_a = constants.size() == 4 && constants[2] != 0;
    }
    detail_.kind = product;
    detail_.data = std::move(parts_.results);
    detail_.sources = std::move(parts_.fragments);
    detail_.sources.insert(detail_.sources.end(), parts_.sources.begin(), parts_.sources.end());
    plain(&run_warpgroup_product);
  }

  /// n of m64nNkK.
  [[nodiscard]] unsigned warpgroup_columns() const {
    const bool pairs = instruction_.type(0) == ptx::Type::f16;
    return static_cast<unsigned>(parts_.results.size()) * (pairs ? 4 : 2);
  }

  void texture() {
    const Decoder::Address& handle = parts_.addresses.at(0);
    if (!handle.symbol.empty()) {
      decoder_.refuse(
          "texture and surface references are not supported by the emulator; use an object, whose "
          "handle is an argument of the kernel");
    }
    const TextureDetail texture = texture_detail(instruction_);
    detail_.address = operand(handle);
    detail_.space = ptx::Space::Global;
    detail_.reads = texture.action != TextureDetail::Action::Store;
    detail_.writes = !detail_.reads;
    detail_.uncounted = true;
    detail_.data = std::move(detail_.writes ? parts_.sources : parts_.results);
    // Gradients follow the coordinates. A texture without mipmaps has one level, whatever is asked.
    detail_.sources = std::move(parts_.fragments);
    detail_.kind = texture;
    switch (texture.action) {
      case TextureDetail::Action::Fetch:
      case TextureDetail::Action::Gather:
        return plain(&run_fetch);
      case TextureDetail::Action::Query:
        return plain(&run_image_query);
      case TextureDetail::Action::Load:
      case TextureDetail::Action::Store:
        return plain(&run_surface);
    }
  }

  /// mapa, getctarank: &a is a shared address in a register, or a variable.
  void peer() {
    detail_.data = std::move(parts_.results);
    detail_.sources = std::move(parts_.sources);
    detail_.space = ptx::space_of(instruction_.get(ptx::Field::Space));
    plain(instruction_.op == ptx::Op::mapa ? &run_map_peer : &run_peer_rank);
  }

  void matrix() {
    take_address(parts_.addresses.at(0));
    MatrixDetail matrix;
    matrix.layout = matrix_layout(instruction_, matrix.lane);
    if (matrix.layout == nullptr) refuse();
    detail_.kind = matrix;
    detail_.reads = !parts_.results.empty();
    detail_.writes = !detail_.reads;
    detail_.data = std::move(detail_.reads ? parts_.results : parts_.fragments);
    detail_.sources = std::move(parts_.sources);
    const std::string_view mnemonic = ptx::info(instruction_.op).mnemonic;
    if (mnemonic == "ldmatrix" || mnemonic == "stmatrix") {
      detail_.element_bytes = 1;
      detail_.elements = 16;
    }
    if (detail_.data.size() > 16) decoder_.refuse("it has more registers than any fragment");
    decoder_.add(finish(&run_matrix));
  }

  void plain(Handler run) {
    Step step = decoder_.step();
    step.run = run;
    step.detail = static_cast<std::uint32_t>(decoder_.code().memory.size());
    detail_.statement = step.statement;
    decoder_.code().memory.push_back(std::move(detail_));
    decoder_.add(step);
  }

  [[noreturn]] void refuse() {
    const std::string_view reason = refusal_reason(instruction_.op);
    decoder_.refuse(reason.empty() ? "the emulator does not have this instruction" : reason);
  }

  Decoder& decoder_;
  const ptx::Instruction& instruction_;
  Parts parts_;
  MemoryDetail detail_;
};

void Decoder::memory_step() { MemoryDecoder(*this).decode(); }

}  // namespace ptxgen::inline v0::emulator
