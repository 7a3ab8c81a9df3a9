// src/emulator/state/code.hpp - a program decoded for 32 lanes at a time
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "emulator/lane/lane.hpp"
#include "emulator/state/origins.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::emulator {

inline constexpr unsigned kLanes = 32;
inline constexpr std::uint32_t kNoIndex = 0xffffffffu;

struct Context;
struct Step;
/// Executes one step for the lanes of `context.active` whose guard holds.
using Handler = void (*)(Context& context, const Step& step);

/// The place of 32 lanes of a register, a constant or a special register: bytes from the start of
/// the frame. Registers of up to 32 bits have lanes of 4 bytes, zero-extended; 64-bit ones of 8
/// bytes; 128-bit ones of 16; a predicate is one 32-bit mask (width 0).
struct Slot {
  std::uint32_t offset = kNoIndex;  ///< kNoIndex: `_`, nothing is stored
  std::uint8_t lane_bytes = 4;      ///< 4, 8, 16, or 0 for a predicate
  std::uint8_t bits = 32;           ///< of the operand, 1 for a predicate
  std::uint8_t register_bits = 32;  ///< of the register; wider than `bits` for ld, st, cvt
  bool is_signed = false;           ///< results narrower than the register are sign-extended
  bool negated = false;             ///< `!p`
  [[nodiscard]] bool present() const noexcept { return offset != kNoIndex; }
};

/// The first bytes of every frame.
struct FrameHead {
  std::uint32_t always = 0xffffffffu;  ///< the guard of steps without one
  std::uint32_t carry = 0;             ///< condition code register, a bit for each lane
  std::uint32_t unused[14] = {};
};
static_assert(sizeof(FrameHead) == 64);

/// One instruction, ready to run. A step whose `run` is null ends its segment (see Segment).
struct Step {
  Handler run = nullptr;
  std::uint32_t guard = offsetof(FrameHead, always);  ///< frame offset of a predicate
  std::uint32_t guard_flip = 0;                       ///< all ones for `@!p`
  std::uint32_t result = kNoIndex;                    ///< frame offset of the only destination
  std::array<std::uint32_t, 3> source{};              ///< frame offsets
  std::uint32_t detail = 0;     ///< index into the table of Code that the handler uses
  std::uint32_t statement = 0;  ///< Code::first_statement + index in Function::body
  std::uint64_t immediate = 0;
};

/// A lane-wise row without a vector handler: runs its LaneFunction.
struct LaneDetail {
  LaneOp op;
  LaneFunction function = nullptr;
  MatrixFunction matrix = nullptr;  ///< instead, for all lanes at once
  std::vector<Slot> sources;
  std::vector<Slot> results;
};

/// An address operand: `base + offset` in each lane.
struct AddressOperand {
  Slot base;                 ///< absent: the offset is the address
  std::uint64_t offset = 0;  ///< bytes
};

/// atom, red
struct AtomicDetail {
  ptx::Modifier operation = ptx::Modifier::none;  ///< add min cas ...
  ptx::Type type = ptx::Type::none;               ///< of one element
};

/// ldmatrix, stmatrix, wmma.load, wmma.store
struct MatrixDetail {
  MatrixLayout layout = nullptr;
  LaneOp lane;
};

/// cp.async. MemoryDetail::address is the shared destination, `sources[0]` the optional size or
/// ignore-src predicate.
struct AsyncCopyDetail {
  AddressOperand from;  ///< global
};

/// cp.async.bulk and st.async. MemoryDetail::address is the destination.
struct BulkDetail {
  enum class Kind : std::uint8_t {
    Load,   ///< global to shared memory, of several blocks with multicast
    Peer,   ///< shared memory of the block to that of a block of the cluster
    Store,  ///< shared to global memory
    Value,  ///< st.async: from registers
  };
  Kind kind = Kind::Load;
  AddressOperand from;     ///< not Value
  AddressOperand barrier;  ///< the mbarrier; not Store
  Slot bytes;              ///< size; not Value
  Slot ranks;              ///< Load: the multicast mask; absent: one block
};

/// cp.async.wait_group, cp.async.wait_all, cp.async.bulk.wait_group
struct WaitGroupDetail {
  std::uint64_t max_pending = 0;  ///< groups that may stay unfinished
  bool all = false;               ///< also copies that are not committed
};

/// mbarrier rows and cp.async.mbarrier.arrive
struct MbarrierDetail {
  enum class Action : std::uint8_t {
    Init,
    Invalidate,
    Arrive,
    ExpectBytes,
    CompleteBytes,
    Test,        ///< test_wait, try_wait
    CopyArrive,  ///< cp.async.mbarrier.arrive
  };
  Action action = Action::Arrive;
  bool drop = false;           ///< Arrive: .arrive_drop
  bool expects_bytes = false;  ///< Arrive: .expect_tx, the operand is bytes
  bool parity = false;         ///< Test: the operand is a parity, not a state
  bool no_increment = false;   ///< CopyArrive: .noinc
  bool relaxed = false;        ///< orders no memory
};

/// wgmma.mma_async. MemoryDetail::data is d; `sources` a (4 registers or a descriptor), b, scale-d.
struct WarpgroupDetail {
  std::uint16_t columns = 0;  ///< n of m64nNkK
  ptx::Type a_type = ptx::Type::none;
  ptx::Type b_type = ptx::Type::none;
  ptx::Type d_type = ptx::Type::none;  ///< f16, f32 or s32
  bool a_in_registers = false;
  bool negate_a = false;
  bool negate_b = false;
  bool transpose_a = false;  ///< contiguous along m
  bool transpose_b = false;  ///< contiguous along n
  bool saturate = false;     ///< .satfinite
};

/// cp.async.bulk.tensor and its reduction. MemoryDetail::address is the shared memory.
struct TensorDetail {
  bool load = false;  ///< to shared memory
  ptx::Modifier reduction = ptx::Modifier::none;
  std::uint8_t dimensions = 1;
  AddressOperand map;      ///< generic
  AddressOperand barrier;  ///< the mbarrier of a load
  std::array<Slot, 5> coordinates;
  Slot ranks;  ///< the multicast mask of a load; absent: one block
};

/// tensormap.replace, whose new value is `sources[0]` or a constant; tensormap.cp_fenceproxy.
struct TensorMapDetail {
  ptx::Modifier field = ptx::Modifier::none;
  std::uint32_t ordinal = 0;
  std::uint64_t value = 0;  ///< without sources
  AddressOperand from;      ///< tensormap.cp_fenceproxy: shared memory
};

/// Texture and surface rows. MemoryDetail::address is the handle; `sources` the coordinates, with
/// the layer first; `data` the results (a fifth is the predicate of residency) or stored values.
struct TextureDetail {
  enum class Action : std::uint8_t {
    Fetch,
    Gather,  ///< tld4
    Query,   ///< txq, suq
    Load,    ///< suld
    Store,   ///< sust
  };
  Action action = Action::Fetch;
  bool surface = false;
  bool layered = false;
  bool integer = false;                          ///< coordinates
  std::uint8_t dimensions = 1;                   ///< without the layer
  std::uint8_t component = 0;                    ///< Gather
  ptx::Type type = ptx::Type::none;              ///< of a result
  ptx::Modifier query = ptx::Modifier::none;     ///< Query
  ptx::Modifier boundary = ptx::Modifier::none;  ///< Load, Store: trap, clamp, zero
};

/// A memory instruction: what all of them have, and `kind` with the rest.
struct MemoryDetail {
  ptx::Space space = ptx::Space::Generic;  ///< Param: of the kernel; of functions it is Local
  ptx::Modifier order =
      ptx::Modifier::none;  ///< weak/none volatile relaxed acquire release acq_rel
  ptx::Modifier scope = ptx::Modifier::none;
  std::uint8_t element_bytes = 4;
  std::uint8_t elements = 1;  ///< 2, 4, 8 for vectors; 16 for ldmatrix and stmatrix
  bool writes = false;
  bool reads = false;
  bool cluster = false;    ///< may reach shared memory of other blocks: generic, .shared::cluster
  bool is_param = false;   ///< .param of a device function: thread-local bytes, not counted
  bool uncounted = false;  ///< no sectors: constant memory
  AddressOperand address;
  /// The symbol of the address operand, for messages: "shared variable 'tile'". Empty for none.
  std::string symbol;
  std::vector<Slot> data;            ///< destinations of loads and atom; values of stores
  std::vector<Slot> sources;         ///< further sources in the order written (atom b, c; strides)
  std::uint32_t statement = 0;       ///< as Step::statement
  std::uint32_t counter = kNoIndex;  ///< index into Worker::memory_counters
  /// For vector/memory_hot.cpp.
  struct Registers {
    std::uint32_t offset[8] = {};      ///< frame offsets of `data`
    std::uint32_t mask = 0xffffffffu;  ///< bits of the registers loaded into
  } registers;
  /// Loads: what must have been written before.
  struct RequiredBytes {
    /// A bit for each element of which never written bytes matter; loaded from the thread's local
    /// memory, and from other memory.
    std::uint8_t local_elements = 0xff;
    std::uint8_t elements = 0xff;
    std::uint32_t used = 0;  ///< bytes that `.pragma "used_bytes_mask"` names; 0: all
  } required;
  std::variant<std::monostate, AtomicDetail, MatrixDetail, AsyncCopyDetail, BulkDetail,
               WaitGroupDetail, MbarrierDetail, WarpgroupDetail, TensorDetail, TensorMapDetail,
               TextureDetail>
      kind;

  template <class Kind>
  [[nodiscard]] const Kind& as() const noexcept {
    return *std::get_if<Kind>(&kind);
  }
};

/// What a control step does, at the end of a segment.
enum class Control : std::uint8_t {
  Next,         ///< continues with the next segment
  Branch,       ///< to `target`, else the next segment
  BranchTable,  ///< brx.idx
  Call,
  CallIndirect,
  CallSystem,  ///< a function that the emulator provides
  Return,
  Exit,
  Barrier,   ///< CTA barriers: sync, arrive, red
  WarpSync,  ///< bar.warp.sync and other rows with a member mask
  Trap,
  Poll,  ///< nanosleep, mbarrier try_wait, polling loads: lets others run
};

/// An argument, parameter or return value of a call: a slot, or bytes of thread-local memory from
/// the frame's local base on.
struct ValuePlace {
  Slot slot;    ///< absent: in memory
  Slot shadow;  ///< of the slot, see TrackDetail::Value
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

/// Details of control steps.
struct ControlDetail {
  Control kind = Control::Next;
  std::uint32_t target = kNoIndex;     ///< segment
  std::vector<std::uint32_t> targets;  ///< BranchTable: segments; CallIndirect: functions
  std::uint32_t callee = kNoIndex;     ///< index into Image::codes
  std::string system;                  ///< CallSystem: the name
  ptx::Op op{};
  ptx::Modifier action =
      ptx::Modifier::none;  ///< Barrier: and or popc of .red; order of a cluster's
  bool aligned = true;
  bool arrive = false;                     ///< Barrier: does not wait
  Slot barrier, count, predicate, result;  ///< Barrier; no `barrier` is that of the cluster
  Slot index;                              ///< BranchTable, CallIndirect
  Slot members;                            ///< WarpSync: the member mask
  Handler together = nullptr;              ///< WarpSync: runs when all lanes have arrived
  std::vector<ValuePlace> arguments;       ///< Call: in the caller's frame
  std::vector<ValuePlace> returns;
  bool backward = false;  ///< Branch: the target is not later in reverse post-order
};

/// Straight-line steps that end with a control step. Every place where lanes may reconverge begins
/// a segment. Segments are numbered in reverse post-order; the lowest runs first.
struct Segment {
  std::uint32_t first = 0;            ///< step
  std::uint32_t control = 0;          ///< step, the last one
  std::uint32_t detail = 0;           ///< ControlDetail
  std::uint32_t instructions = 0;     ///< PTX instructions in it (a Next step is none)
  std::uint32_t first_statement = 0;  ///< of them, in Code::segment_statements
  std::uint32_t next = 0;             ///< the next segment in the text
  Control kind = Control::Next;
  bool polls = false;  ///< has an access that may wait for other threads
  /// Has a store, and is after a barrier on every path: lanes that execute it without their warp
  /// have skipped the barrier, unlike lanes that exit before it.
  bool follows_barrier = false;
};

/// The initial value of a slot of a frame.
struct FrameValue {
  enum class Kind : std::uint8_t {
    Constant,
    Special,       ///< value: SpecialRegister, `component`
    LocalAddress,  ///< value + the frame's local base, in every lane (offset in the window)
    GenericLocal,  ///< the same as a generic address
  };
  Kind kind = Kind::Constant;
  Slot slot;
  std::uint8_t component = 0;
  std::uint64_t value = 0;
};

/// How a statement propagates undefined bits of registers: a step in front of statements whose
/// registers may be undefined (analysis::maybe_undefined).
struct TrackDetail {
  enum class Kind : std::uint8_t {
    Defines,   ///< the results are defined: loads, calls, values of other lanes
    Any,       ///< an undefined bit of any source makes the results undefined
    Elements,  ///< the same, element by element of a packed type
    Pack,      ///< cvt to a packed type: each source makes an element
    Carries,   ///< an undefined bit makes all higher ones undefined: integer add, mul
    Moves,     ///< `function` moves bits of the `data` sources; the others select where
    Logic,     ///< by `table`: bits that do not affect the result may be undefined
    Select,    ///< selp
  };
  /// A register and its defined bits, in the same layout.
  struct Value {
    Slot slot;
    Slot shadow;  ///< absent: all bits are defined
  };
  Kind kind = Kind::Defines;
  std::uint8_t elements = 1;  ///< Elements, Pack
  std::uint8_t table = 0;     ///< Logic: the result for each row; source 0 is the row's lowest bit
  std::uint64_t data = 0;     ///< Moves: a bit for each source
  LaneOp op;
  LaneFunction function = nullptr;
  std::vector<Value> sources;
  std::vector<Value> results;
  Slot guard;  ///< shadow of the guard, if it may be undefined
  /// A value that must be defined, and why.
  struct Use {
    Value value;
    std::string name;          ///< "%r5"
    std::string_view role;     ///< "decides a branch"
    bool only_global = false;  ///< a stored value: only if `base` + `offset` is global memory
  };
  std::vector<Use> uses;
  Slot base;
  std::uint64_t offset = 0;
};

/// Accesses of an instruction to registers that a wgmma of the function has as accumulator or as
/// fragment of a.
struct WarpgroupAccesses {
  struct Access {
    std::uint32_t offset = 0;  ///< in the frame
    std::string name;          ///< "%f5"
    bool writes = false;
  };
  std::vector<Access> accesses;
};

/// One function, decoded.
struct Code {
  const ptx::Function* function = nullptr;
  std::uint32_t index = 0;            ///< in Image::codes
  std::uint32_t first_statement = 0;  ///< number of its first statement in the whole program
  std::uint32_t first_segment = 0;    ///< the same for segments
  std::vector<Step> steps;
  std::vector<Segment> segments;
  std::vector<std::uint32_t> segment_statements;  ///< indices in Function::body
  std::uint32_t entry = 0;                        ///< segment
  std::vector<LaneDetail> lanes;
  std::deque<MemoryDetail> memory;  ///< elements keep their addresses: steps point to them
  std::vector<ControlDetail> controls;
  std::vector<TrackDetail> tracks;
  std::vector<WarpgroupAccesses> warpgroup_accesses;
  /// TrackDetail::Value::shadow of whole registers, zero (undefined) when the function begins.
  struct Shadow {
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
    std::uint8_t lane_bytes = 0;
  };
  std::vector<Shadow> shadows;
  std::vector<FrameValue> frame_values;
  /// Where the registers are, by their number in analysis::RegisterIndex; for observers.
  struct RegisterPlace {
    std::uint32_t offset = kNoIndex;  ///< kNoIndex: no place
    bool shared = false;              ///< with registers that hold values elsewhere in the text
  };
  std::vector<RegisterPlace> register_places;
  std::vector<ValuePlace> parameters;  ///< of a device function
  std::vector<ValuePlace> returns;
  std::uint32_t frame_bytes = 0;
  std::uint32_t local_bytes = 0;  ///< .local and .param variables of one activation
  std::uint32_t kernel = 0;       ///< Image::kernels
};

struct RaceMemo;  // race/store_targets.hpp

/// A decoded module whose variables are allocated.
class Image {
 public:
  Image() = default;
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image();  ///< frees its variables

  ptx::Module module;
  std::uint16_t sm = 0;                            ///< architecture of the modelled GPU
  std::vector<SourceLocation> sites_by_line;       ///< C++ call of each PTX line, or empty
  mutable std::shared_ptr<const Origins> origins;  ///< null: texts name PTX lines
  std::vector<std::unique_ptr<Code>> codes;  ///< each function once for each kernel that calls it
  std::vector<Program::Kernel> kernels;
  struct VariableAddress {
    std::string name;
    ptx::Space space;
    std::uint64_t address;
    std::uint64_t bytes;
  };
  std::vector<VariableAddress> variables;  ///< module-level .global and .const
  /// The parts of a kernel; indices as `kernels`.
  struct KernelImage {
    std::uint32_t code = kNoIndex;                ///< the entry's
    std::vector<std::uint32_t> code_of_function;  ///< Module::functions -> codes, or kNoIndex
    /// Shared memory by name, for messages: sorted by offset.
    struct SharedVariable {
      std::string name;
      std::uint32_t offset;
      std::uint32_t bytes;
    };
    std::vector<SharedVariable> shared_variables;
    std::uint32_t static_shared_bytes = 0;
    /// Whether results may depend on the order of blocks (see Options::parallel).
    bool order_dependent = false;
    bool recursive = false;
    std::uint32_t local_bytes = 0;                ///< of a thread, calls included unless recursive
    mutable std::shared_ptr<RaceMemo> race_memo;  ///< made by the first launch that needs it
  };
  std::vector<KernelImage> kernel_images;
  std::vector<std::uint32_t> first_statement;  ///< by Module::functions
  std::uint32_t statement_count = 0;
  std::uint32_t segment_count = 0;
  std::uint32_t memory_counter_count = 0;
  AddressSpace* space = nullptr;
  std::vector<std::uint64_t> allocations;  ///< of variables

  /// The function and statement of a statement number.
  struct Place {
    const ptx::Function* function = nullptr;
    const ptx::Instruction* statement = nullptr;
  };
  [[nodiscard]] Place place(std::uint32_t statement) const noexcept;
  /// The 1-based PTX line of a statement number.
  [[nodiscard]] std::uint32_t line(std::uint32_t statement) const noexcept;
  /// "at line 9", or "at a.cpp:12" with `origins`; empty if they do not know the line.
  [[nodiscard]] std::string at_text(std::uint32_t statement) const;
};

}  // namespace ptxgen::inline v0::emulator
