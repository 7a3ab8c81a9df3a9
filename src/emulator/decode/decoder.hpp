// src/emulator/decode/decoder.hpp - from statements to steps
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "emulator/state/code.hpp"
#include "ptxgen/analysis/cfg.hpp"
#include "ptxgen/analysis/liveness.hpp"
#include "ptxgen/analysis/registers.hpp"

namespace ptxgen::inline v0::emulator {

/// Addresses of the module's variables; filled before functions are decoded.
struct Placement {
  /// Module::variables by index: address in its space (global: device address; shared: offset;
  /// const: device address too, since constant memory is read-only global memory here).
  std::vector<std::uint64_t> module_variables;
  /// Functions' own .shared, .const and .global variables: [function][variable].
  std::vector<std::vector<std::uint64_t>> function_variables;
};

/// The registers that affect results: addresses, guards, operands of branches and computations,
/// values stored to global memory. The others are only copied, masked and stored: padding, and
/// words of bit fields before the first field is set.
class DecidingRegisters {
 public:
  DecidingRegisters() = default;
  DecidingRegisters(const ptx::Function& function, const analysis::RegisterIndex& index);
  /// For values from the thread's local memory: a store to a generic address does not count.
  [[nodiscard]] bool in_thread(std::uint32_t number) const noexcept {
    return in_thread_.contains(number);
  }
  /// For values from other memory: a store to a generic address counts.
  [[nodiscard]] bool anywhere(std::uint32_t number) const noexcept {
    return anywhere_.contains(number);
  }

 private:
  analysis::RegisterSet in_thread_;
  analysis::RegisterSet anywhere_;
};

/// The registers that share places of the frame with others, since they never hold values at the
/// same time: a small frame stays in the processor's first cache. A register that may be read
/// before it is written has a place of its own.
class SharedPlaces {
 public:
  SharedPlaces() = default;
  /// `alone`: the registers that keep their places.
  SharedPlaces(const ptx::Function& function, const analysis::Cfg& cfg,
               const analysis::RegisterIndex& index, const analysis::RegisterSet& alone);

  /// Goes on to a statement, in the order of the text. Calls `end(number)` for the registers that
  /// are dead from there on, then `begin(number)` for those whose values begin.
  template <class End, class Begin>
  void go_to(std::uint32_t statement, const End& end, const Begin& begin) {
    for (; ended_ < by_end_.size() && ranges_[by_end_[ended_]].last < statement; ++ended_) {
      end(by_end_[ended_]);
    }
    for (; begun_ < by_begin_.size() && ranges_[by_begin_[begun_]].first <= statement; ++begun_) {
      begin(by_begin_[begun_]);
    }
  }

 private:
  std::vector<analysis::LiveRange> ranges_;
  std::vector<std::uint32_t> by_begin_, by_end_;
  std::size_t begun_ = 0, ended_ = 0;
};

/// Decodes one function. Memory instructions are in decode/memory.cpp.
class Decoder {
 public:
  Decoder(Image& image, const Placement& placement, Code& code);

  /// Places parameters, return values and local variables. Call it for all functions of a kernel
  /// before decoding the first: calls need the places of the callee.
  void place();
  /// Throws `Error` (Stage::Load, code "unsupported") with instruction, line and reason.
  void decode();

  // For the parts of the decoder.

  /// The slot of a source of that type: of a register, or of a constant, special register or
  /// address of a symbol in the frame.
  [[nodiscard]] Slot source(const ptx::Operand& operand, ptx::Type type);
  /// A destination register; absent for `_`.
  [[nodiscard]] Slot destination(const ptx::Operand& operand, ptx::Type type);
  /// All elements of an operand, braces flattened.
  void sources(const ptx::Operand& operand, ptx::Type type, std::vector<Slot>& out);
  void destinations(const ptx::Operand& operand, ptx::Type type, std::vector<Slot>& out);
  /// Refuses a vector register with another number of elements than its row.
  void check_elements(const ptx::Operand& operand, const ptx::OperandSpec& spec) const;
  /// `[base+offset]` of a memory operand: base register, or the address of a symbol and its space.
  struct Address {
    Slot base;  ///< absent if the address is known
    std::uint64_t offset = 0;
    ptx::Space space = ptx::Space::Generic;  ///< of the symbol, Generic if there is none
    bool function_param = false;  ///< a .param of a device function: thread-local, from the frame
    std::string symbol;           ///< "shared variable 'tile'", or empty
  };
  [[nodiscard]] Address address(const ptx::Operand& operand);
  /// A step for the current instruction, with guard and statement filled in.
  [[nodiscard]] Step step() const;
  void add(const Step& step);
  [[noreturn]] void refuse(std::string_view reason) const;

  [[nodiscard]] const ptx::Instruction& instruction() const noexcept { return *instruction_; }
  [[nodiscard]] std::span<const ptx::Operand> operands() const noexcept;
  [[nodiscard]] const ptx::Function& function() const noexcept { return *code_.function; }
  [[nodiscard]] Code& code() noexcept { return code_; }
  [[nodiscard]] Image& image() noexcept { return image_; }
  /// Slot of a 32- or 64-bit constant in all lanes.
  [[nodiscard]] Slot constant(std::uint64_t bits, unsigned width);
  /// A bit for each result of a load: whether it must have been written.
  struct Deciding {
    std::uint8_t in_thread = 0;
    std::uint8_t anywhere = 0;
  };
  [[nodiscard]] Deciding deciding_results() const;
  /// The used bytes of a load, from a `.pragma` in front of it.
  [[nodiscard]] std::uint32_t used_bytes() const noexcept { return used_bytes_; }
  [[nodiscard]] std::uint32_t new_memory_counter() { return image_.memory_counter_count++; }

 private:
  void memory_step();  // memory.cpp: Execution::Memory, MatrixMemory and Async rows
  void lane_step();
  void warp_step();     // control.cpp
  void control_step();  // control.cpp
  // track.cpp: steps in front of instructions that name possibly undefined registers.
  void track_step();                        ///< for rows that lane_step() does not decode
  void track_lane(const LaneDetail& lane);  ///< for rows that it decodes
  void find_warpgroup_registers();
  void warpgroup_access_step();
  void track_stored(TrackDetail& detail);
  void add_track(TrackDetail&& detail, bool guard_first);
  [[nodiscard]] Slot shadow_of(const Slot& slot) const;
  [[nodiscard]] TrackDetail::Value tracked(const Slot& slot) const;
  [[nodiscard]] Slot guard_shadow();
  [[nodiscard]] std::vector<Slot> components(ptx::Register reg, std::uint8_t component);
  void decode_instruction();
  void end_function();
  void note_register_places();
  void symbol_address(const ptx::Symbol& symbol, Address& address);
  void branch_table_step(ControlDetail& detail);
  void barrier_step(ControlDetail& detail);
  void cluster_barrier_step(ControlDetail& detail);
  [[nodiscard]] std::vector<ValuePlace> call_values(const ptx::Operand* list,
                                                    const std::vector<ptx::Variable>* declared);
  [[nodiscard]] bool is_indirect_call() const;
  void call_step(ControlDetail& detail);
  void begin_segment();
  void end_segment(ControlDetail&& detail);
  void resolve_labels();
  void order_segments();
  void mark_followers();
  [[nodiscard]] std::uint32_t grow_frame(unsigned bytes);
  /// Places of registers whose values begin at the statement, and those of dead ones for reuse.
  void place_registers();
  [[nodiscard]] std::uint32_t register_bytes(ptx::Register reg) const;
  [[nodiscard]] Slot frame_value(FrameValue::Kind kind, std::uint64_t value, std::uint8_t component,
                                 unsigned bits);
  [[nodiscard]] Slot symbol_slot(const ptx::Operand& operand, ptx::Type type);
  [[nodiscard]] Slot register_slot(const ptx::Operand& operand, ptx::Type type);
  [[nodiscard]] Slot declared_slot(ptx::Register reg);
  [[nodiscard]] ValuePlace value_place(const ptx::Operand& operand, std::uint32_t bytes);

  Image& image_;
  const Placement& placement_;
  Code& code_;
  const ptx::Instruction* instruction_ = nullptr;
  std::uint32_t statement_ = 0;           ///< in the function
  std::vector<std::uint32_t> registers_;  ///< frame offset, by number in register_index_
  SharedPlaces shared_places_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> free_places_;  ///< frame offsets, by bytes
  std::map<std::tuple<int, std::uint64_t, int, unsigned>, Slot> values_;
  std::vector<std::uint32_t> local_offset_;  ///< by function variable (.local, .param)
  std::vector<std::uint32_t> segment_of_label_;
  bool open_ = false;  ///< a segment has begun
  std::uint32_t used_bytes_ = 0xffffffffu;
  analysis::Cfg cfg_;
  analysis::RegisterIndex register_index_;
  analysis::RegisterSet undefined_;  ///< possibly undefined, see analysis::maybe_undefined
  analysis::RegisterSet alone_;      ///< share their places with no other register
  DecidingRegisters deciding_;
  std::vector<bool> warpgroup_registers_;  ///< of wgmma, by number in register_index_, or empty
  std::map<std::uint32_t, std::uint32_t> shadows_;  ///< frame offset -> bytes; the shadow follows
  std::vector<std::uint32_t> segment_blocks_;  ///< position of each segment's block in the order
};

}  // namespace ptxgen::inline v0::emulator
