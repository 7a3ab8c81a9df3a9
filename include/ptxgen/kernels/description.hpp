// ptxgen/kernels/description.hpp - what is known of a kernel without its C++ type
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptxgen/check/batch_strategy.hpp"
#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/kernels/operand.hpp"
#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0 {

/// One parameter of a kernel: a shape or an option. Always an unsigned number; its values may have
/// names.
struct ParameterInfo {
  std::string_view name;
  std::string_view type;  ///< "u32", "u64", "bool", "word"
  std::uint64_t default_value = 0;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  std::string_view doc;
  std::span<const std::string_view> words = {};  ///< names of the values 0, 1, ..., or none
  /// Whether the kernel's code depends on it, so that each value is a module of its own.
  bool specializes = false;
  std::uint64_t multiple_of = 1;  ///< every value is a multiple of it
};

/// One argument of a kernel, in the order of the PTX parameters; promises come last.
struct ArgumentInfo {
  std::string_view name;
  ArgumentRole role = ArgumentRole::Input;
  std::string_view doc;
  ptx::Type scalar = ptx::Type::none;         ///< of Scalar and Shape
  std::array<std::string_view, 2> may_alias;  ///< inputs that an output may be identical to
  double low = -1;                            ///< range of random values
  double high = 1;
  bool optional = false;  ///< some shapes have no such operand
};

/// What a tensor map says of an operand (cuTensorMapEncodeTiled), dimension 0 first, which is the
/// contiguous one. What is out of bounds is copied as zeros.
struct TensorMapUse {
  std::uint64_t address = 0;               ///< a multiple of 16
  std::array<std::uint64_t, 5> extents{};  ///< elements of each dimension
  /// Bytes from one index of dimension i + 1 to the next, multiples of 16 below 2^40.
  std::array<std::uint64_t, 4> strides{};
  std::array<std::uint32_t, 5> box{};  ///< elements of a copy, 1 to 256 of each dimension
  std::uint8_t rank = 2;               ///< 1 to 5
  std::uint8_t swizzle = 128;          ///< bytes: 0, 32, 64 or 128
  ElementType type = ElementType::f16;
};
/// Bytes of an encoded map in an argument block, and their alignment.
inline constexpr std::uint32_t kTensorMapBytes = 128;
inline constexpr std::uint32_t kTensorMapAlignment = 64;
static_assert(sizeof(TensorMapUse) <= kTensorMapBytes);

/// What is in an operand of repacked rows, whose elements are bytes: blocks of that type, in rows
/// of `columns` values as `repack_row` writes them. 0: the operand is not repacked.
struct RepackedRows {
  ElementType type = ElementType::f32;
  std::uint64_t columns = 0;
};

/// A number or device memory for one operand, by name.
struct OperandValue {
  std::string_view name;
  DeviceRange memory = {};  ///< of an operand in device memory
  double number = 0;        ///< of a scalar; of a promise: not 0 is given
};

/// Operands of one call on the host as fp64, in the order of the arguments; for references.
class HostOperands {
 public:
  struct Operand {
    std::string_view name;
    std::vector<double> values;  ///< of memory; a scalar has one
    /// Of an output: what `ErrorBound::relative` is relative to. Of an input in a block format:
    /// `term_magnitudes`.
    std::vector<double> magnitude;
  };
  std::vector<Operand> all;

  /// All throw `Error` (Stage::Build, "arguments") if the call has no operand of that name.
  [[nodiscard]] Operand& operator[](std::string_view name);
  [[nodiscard]] const std::vector<double>& input(std::string_view name) const;
  [[nodiscard]] double number(std::string_view name) const;
};

/// How far a result may be from the reference, before it is rounded to its type:
/// `relative * magnitude + absolute`. Half a unit in the last place of the type is added for that
/// rounding.
struct ErrorBound {
  double relative = 0;
  double absolute = 0;
  bool exact = false;  ///< the reference, rounded once to the type, bit for bit; any NaN is a NaN
};

/// A constant of a type that only its maker knows.
class ErasedValue {
 public:
  ErasedValue() = default;
  template <class T>
  [[nodiscard]] static ErasedValue of(T value) {
    ErasedValue erased;
    erased.object_ = new T(std::move(value));
    erased.destroy_ = [](const void* object) noexcept { delete static_cast<const T*>(object); };
    return erased;
  }
  ErasedValue(ErasedValue&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)), destroy_(other.destroy_) {}
  ErasedValue& operator=(ErasedValue&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  ErasedValue(const ErasedValue&) = delete;
  ErasedValue& operator=(const ErasedValue&) = delete;
  ~ErasedValue() {
    if (object_ != nullptr) destroy_(object_);
  }
  [[nodiscard]] const void* get() const noexcept { return object_; }

 private:
  const void* object_ = nullptr;
  void (*destroy_)(const void*) noexcept = nullptr;
};

/// What identifies a module among those of a kernel.
struct KernelKey {
  std::array<std::uint64_t, 6> values{};
  std::uint64_t plan = 0;
};

/// What identifies a choice of a family: shape, types and alignments of the addresses.
struct ChoiceKey {
  std::array<std::uint64_t, 4> words{};
  friend bool operator==(const ChoiceKey&, const ChoiceKey&) = default;
};

struct KernelDescription;
class HostRun;  // ptxgen/kernels/host.hpp

/// Measured plans of a family; each family has its own interface derived from this.
class PlanSource {
 public:
  virtual ~PlanSource() = default;

 protected:
  PlanSource() = default;
  PlanSource(const PlanSource&) = default;
  PlanSource& operator=(const PlanSource&) = default;
};

/// What a family chooses for.
struct ChoiceRequest {
  const ptx::Gpu& gpu;
  const ptx::Target& target;
  std::string_view device;                   ///< its name, for messages
  std::string_view implementation = "auto";  ///< asked for by name
  const PlanSource* measured = nullptr;
  /// Receives why a measured plan is not used. Not null.
  void (*warn)(const void* user, const std::string& message) = nullptr;
  const void* user = nullptr;
  /// The device's architecture-specific target ("sm_90a"), for kernels that `target` cannot run;
  /// null: none.
  const ptx::Target* specific = nullptr;
};

/// The kernel that serves a call of a family, or a routine of another library.
struct KernelChoice {
  const KernelDescription* kernel = nullptr;  ///< null: the routine named `implementation`
  ErasedValue spec;                           ///< of `kernel`
  std::string_view implementation;            ///< "direct", "cublas"; lives as long as the program
  std::string reason;
  /// Packs the arguments of `kernel` from the family's operands.
  void (*pack)(const void* spec, const void* operands, std::uint64_t workspace,
               std::byte* block) = nullptr;
  /// The routine that serves the call if `kernel` cannot be loaded; empty: none.
  std::string_view fallback;
};

/// How a family of kernels chooses one of them.
struct KernelFamily {
  /// The implementations that can be asked for, "auto" first.
  std::span<const std::string_view> implementations;
  ChoiceKey (*key)(const void* spec, const void* operands);
  KernelChoice (*choose)(const void* spec, const void* operands, const ChoiceRequest& request);
};

/// Sizes of a decoder's layers. The defaults are those of Qwen2.5-Coder-1.5B.
struct LayerSizes {
  std::uint32_t hidden = 1536;
  std::uint32_t intermediate = 8960;
  std::uint32_t heads = 12;
  std::uint32_t kv_heads = 2;
  std::uint32_t head_size = 128;
  std::uint32_t outputs = 8960;  ///< of a matrix with `hidden` columns
  std::uint32_t vocabulary = 151936;
  std::uint32_t positions = 4096;  ///< of a KV cache
};

/// An operand of a single-row kernel, and the one of the batched kernel that has it for all rows: a
/// scalar may be an element for each row in device memory.
struct TwinOperand {
  std::string_view single;
  std::string_view batched;
};

/// A batched kernel, each row of which repeats a single-row kernel, its twin. Operands of equal
/// names correspond. An operand in device memory with as many elements for M rows as M twins have
/// is divided by rows; one with as many as one twin has is shared.
struct KernelBatch {
  BatchStrategy strategy = BatchStrategy::GridY;
  std::string_view rows;           ///< the parameter that counts rows
  std::string_view variants = {};  ///< the parameter whose words are pairs of their own, or empty
  std::span<const TwinOperand> renamed = {};
  const KernelDescription& (*twin)() = nullptr;
  /// The twin of a value of the kernel's type.
  ErasedValue (*twin_of)(const void* spec) = nullptr;
  /// Parameter values with the sizes of a layer.
  std::vector<std::uint64_t> (*for_layer)(std::span<const std::uint64_t> values,
                                          const LayerSizes& sizes) = nullptr;
};

/// A kernel, as its `Describe` says. Functions named `..._of` take a pointer to a value of the
/// kernel's type; the others parameter values in the order of `parameters`, and throw `Error`
/// (Stage::Build, "bad-parameter") if one is missing or out of range.
struct KernelDescription {
  std::string_view name;            ///< also the entry's name in the PTX
  std::string_view doc;             ///< what it computes, one sentence
  std::string_view access_pattern;  ///< how consecutive lanes access memory
  std::span<const ParameterInfo> parameters;
  std::span<const ArgumentInfo> arguments;
  std::uint64_t name_hash = 0;
  const void* type = nullptr;     ///< unique to the C++ type, among kernels of one name too
  std::uint32_t block_bytes = 0;  ///< of the argument block

  /// Throws `Error` (Stage::Launch) as `refuse_operands`, "bad-parameter", and what the kernel
  /// adds.
  void (*check_of)(const void* spec, const void* operands) = nullptr;
  /// Throws `Error` (Stage::Build) if the target cannot run this kernel; null: every target can.
  void (*check_target_of)(const void* spec, const ptx::Target& target) = nullptr;
  /// Which of its ways the kernel is, for the record; null: it has one.
  std::string_view (*implementation_of)(const void* spec) = nullptr;
  LaunchGeometry (*geometry_of)(const void* spec, const ptx::Gpu& gpu) = nullptr;
  KernelKey (*key_of)(const void* spec) = nullptr;
  WorkspaceNeed (*workspace_of)(const void* spec) = nullptr;  ///< null: none
  void (*pack_of)(const void* spec, const void* operands, std::uint64_t workspace,
                  std::byte* block) = nullptr;
  ptx::Module (*build_of)(const void* spec, const ptx::Target& target) = nullptr;
  KernelCost (*cost_of)(const void* spec) = nullptr;
  /// Whether the caller allows the launch to start before the kernel ahead of it has ended; null:
  /// always.
  bool (*may_start_early)(const void* operands) = nullptr;
  const KernelFamily* family = nullptr;  ///< null: the kernel itself is launched
  const KernelBatch* batch = nullptr;    ///< null: no kernel is its single-row twin

  /// Element type and number of elements of argument `i`, in device memory; 0: not present.
  ElementType (*type_of)(const void* spec, std::size_t i) = nullptr;
  std::uint64_t (*elements_of)(const void* spec, std::size_t i) = nullptr;
  std::uint32_t (*alignment_of)(const void* spec, std::size_t i) = nullptr;  ///< bytes
  RepackedRows (*repacked_of)(const void* spec, std::size_t i) = nullptr;
  /// Whether this shape has argument `i`.
  bool (*is_present_of)(const void* spec, std::size_t i) = nullptr;
  /// Whether the kernel reads argument `i`: inputs, and some outputs.
  bool (*is_read_of)(const void* spec, std::size_t i) = nullptr;
  void (*values_of)(const void* spec, std::uint64_t* values) = nullptr;
  /// fp64 results from fp64 inputs.
  void (*reference_of)(const void* spec, HostOperands& operands) = nullptr;
  ErrorBound (*bound_of)(const void* spec) = nullptr;
  /// The same on the elements as they are in memory, for devices of kind Host; null: the reference
  /// serves them. Within the bound; the operands are checked.
  void (*host_of)(const void* spec, const void* operands, const HostRun& run) = nullptr;
  /// Shapes that tests and `verify --cases` run, as parameter values.
  std::vector<std::vector<std::uint64_t>> (*cases)() = nullptr;

  ErasedValue (*make_spec)(std::span<const std::uint64_t> values) = nullptr;
  /// Throws `Error` (Stage::Launch, "arguments") for a name that is no operand.
  ErasedValue (*make_operands)(std::span<const OperandValue> operands) = nullptr;
  ErasedValue (*copy_spec)(const void* spec) = nullptr;
  ErasedValue (*copy_operands)(const void* operands) = nullptr;
  /// Argument `i`, which is in device memory, at this launch.
  OperandUse (*use_of)(const void* spec, const void* operands, std::size_t i) = nullptr;
  /// The bits of argument `i` that are passed to the kernel; 0 unless a scalar or a shape.
  std::uint64_t (*bits_of)(const void* spec, const void* operands, std::size_t i) = nullptr;
  /// Where tensor maps are in the argument block. `pack_of` leaves a `TensorMapUse` there, which
  /// the launcher replaces by the encoded map.
  std::span<const std::uint32_t> tensor_maps;
  bool needs_specific = false;  ///< runs on architecture-specific targets ("sm_90a") alone

  [[nodiscard]] ptx::Module build(std::span<const std::uint64_t> values,
                                  const ptx::Target& target) const {
    return build_of(make_spec(values).get(), target);
  }
  [[nodiscard]] LaunchGeometry geometry(std::span<const std::uint64_t> values,
                                        const ptx::Target& target) const;
  [[nodiscard]] KernelCost cost(std::span<const std::uint64_t> values) const {
    return cost_of(make_spec(values).get());
  }
  [[nodiscard]] std::vector<std::uint64_t> default_values() const;
  /// Whether the target can run the kernel in its default shape.
  [[nodiscard]] bool serves(const ptx::Target& target) const;
};

/// A call of a kernel that is known at run time only.
struct KernelCall {
  const KernelDescription* kernel = nullptr;
  std::vector<std::uint64_t> values;  ///< in the order of the parameters
  std::vector<OperandValue> operands;
};

/// "0..4294967295", "2..2048, multiples of 2", "f32|f16|bf16"
[[nodiscard]] std::string range_text(const ParameterInfo& parameter);
/// "k = 5, n = 7": sizes, and words that are not the default.
[[nodiscard]] std::string shape_text(const KernelDescription& kernel, const void* spec);

/// Throws `Error` (Stage::Build, "bad-parameter") unless there is one value for each parameter, all
/// in range.
void check_values(const KernelDescription& kernel, std::span<const std::uint64_t> values);

/// All kernels of the library, in alphabetical order.
[[nodiscard]] std::span<const KernelDescription> catalog() noexcept;
/// The kernel of that name, or nullptr.
[[nodiscard]] const KernelDescription* find_kernel(std::string_view name) noexcept;
/// The kernel of that name. Throws `Error` (Stage::Build, "no-kernel") listing the names.
[[nodiscard]] const KernelDescription& kernel_named(std::string_view name);
/// The index of that parameter. Throws `Error` (Stage::Build, "bad-parameter") listing the names.
[[nodiscard]] std::size_t parameter_index(const KernelDescription& kernel, std::string_view name);
/// The index of that operand. Throws `Error` (Stage::Launch, "arguments") listing the names.
[[nodiscard]] std::size_t argument_index(const KernelDescription& kernel, std::string_view name);

}  // namespace ptxgen::inline v0
