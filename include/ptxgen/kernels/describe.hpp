// ptxgen/kernels/describe.hpp - Describe<K>: the one place that says what a kernel is
//
// A kernel is a value: a structure with its parameters, and a nested or named `Operands` with what
// a launch takes. `Describe<K>` lists both; launcher, module key, catalog, C API, program,
// verification and documentation follow from it. docs/described_kernel.md adds one from an empty
// file.
#pragma once

#include <cstring>
#include <type_traits>
#include <utility>

#include "ptxgen/kernels/description.hpp"

namespace ptxgen::inline v0 {

struct KernelDoc {
  std::string_view name;            ///< also the entry's name in the PTX
  std::string_view doc;             ///< what it computes, one sentence
  std::string_view access_pattern;  ///< how consecutive lanes access memory
};

/// The description of kernel K. Members:
///   `static constexpr KernelDoc text`
///   `static constexpr ParameterRow<K> parameters[]`   made by `number`, `choice`, `flag`
///   `static constexpr ArgumentRow<K> arguments[]`     in the order of the PTX parameters
///   `static void reference(const K&, HostOperands&)`  fp64
///   `static ErrorBound bound(const K&)`
///   `static constexpr K cases[]`                      shapes for tests
/// and, where a kernel has more to say, `key`, `workspace`, `check`, `check_target`,
/// `implementation`, `may_start_early`, `family`, `needs_specific_target` (a constant), and
///   `static void host(const K&, const Operands&, const HostRun&)`  the kernel on the host.
///
/// A batched kernel with a single-row twin also has
///   `static constexpr KernelBatch batch{...}`  strategy, row parameter, renamed operands
///   `static T twin(const K&)`                  the kernel of one row
///   `static K for_layer(K, const LayerSizes&)` the same with the sizes of a layer
template <class K>
struct Describe;

template <class K>
concept Described = requires {
  Describe<K>::text;
  typename K::Operands;
};

/// The kernel's name in the catalog and in errors.
template <class K>
inline constexpr std::string_view kernel_name = Describe<K>::text.name;

// Parameters ------------------------------------------------------------------------------------

template <class K>
struct ParameterRow {
  ParameterInfo info;
  std::uint64_t (*get)(const K&) = nullptr;
  void (*set)(K&, std::uint64_t) = nullptr;

  /// Only multiples of `step` are values.
  [[nodiscard]] constexpr ParameterRow multiple_of(std::uint64_t step) const noexcept {
    ParameterRow row = *this;
    row.info.multiple_of = step;
    return row;
  }
  /// The kernel's code depends on the value: each value is a module of its own.
  [[nodiscard]] constexpr ParameterRow specializes() const noexcept {
    ParameterRow row = *this;
    row.info.specializes = true;
    return row;
  }
};

/// A value of an enumeration and its name.
template <class E>
struct Word {
  std::string_view name;
  E value;
};

inline constexpr Word<ElementType> kFloatTypes[] = {
    {"f32", ElementType::f32}, {"f16", ElementType::f16}, {"bf16", ElementType::bf16}};

namespace detail {

template <class M>
struct MemberOf;
template <class C, class T>
struct MemberOf<T C::*> {
  using Class = C;
  using Type = T;
};
template <auto kMember>
using ClassOf = typename MemberOf<decltype(kMember)>::Class;
template <auto kMember>
using TypeOfMember = typename MemberOf<decltype(kMember)>::Type;

template <auto& kWords>
inline constexpr auto kNamesOf = [] {
  std::array<std::string_view, std::size(kWords)> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kWords[i].name;
  return names;
}();

// FNV-1a (Fowler, Noll, Vo).
constexpr std::uint64_t name_hash(std::string_view name) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// Its address tells kernel types apart, whatever their names are.
template <class K>
inline constexpr char kTypeTag = 0;

}  // namespace detail

/// A number from `min` to `max`.
template <auto kMember>
[[nodiscard]] constexpr auto number(std::string_view name, std::uint64_t min, std::uint64_t max,
                                    std::string_view doc) {
  using K = detail::ClassOf<kMember>;
  using T = detail::TypeOfMember<kMember>;
  return ParameterRow<K>{
      {name, sizeof(T) == 8 ? "u64" : "u32", K{}.*kMember, min, max, doc},
      [](const K& spec) { return static_cast<std::uint64_t>(spec.*kMember); },
      [](K& spec, std::uint64_t value) { spec.*kMember = static_cast<T>(value); }};
}

/// One of `kWords`, an array of `Word`.
template <auto kMember, auto& kWords>
[[nodiscard]] constexpr auto choice(std::string_view name, std::string_view doc) {
  using K = detail::ClassOf<kMember>;
  constexpr auto kGet = [](const K& spec) {
    for (std::uint64_t i = 0; i < std::size(kWords); ++i) {
      if (kWords[i].value == spec.*kMember) return i;
    }
    return static_cast<std::uint64_t>(std::size(kWords));  // out of range
  };
  return ParameterRow<K>{
      {name, "word", kGet(K{}), 0, std::size(kWords) - 1, doc, detail::kNamesOf<kWords>},
      kGet,
      [](K& spec, std::uint64_t value) { spec.*kMember = kWords[value].value; }};
}

/// 1 or 0.
template <auto kMember>
[[nodiscard]] constexpr auto flag(std::string_view name, std::string_view doc) {
  auto row = number<kMember>(name, 0, 1, doc);
  row.info.type = "bool";
  return row;
}

// Arguments -------------------------------------------------------------------------------------

/// A number of values: of a member of K, or computed from its shape.
template <class K>
struct ElementCount {
  std::uint32_t K::*member = nullptr;
  std::uint64_t (*function)(const K&) = nullptr;
  constexpr ElementCount() = default;
  constexpr ElementCount(std::uint32_t K::*of) : member(of) {}
  template <class F>
  requires std::is_convertible_v<F, std::uint64_t (*)(const K&)>
  constexpr ElementCount(F of) : function(of) {}
  [[nodiscard]] constexpr std::uint64_t operator()(const K& spec) const {
    return function != nullptr ? function(spec) : member != nullptr ? spec.*member : 0;
  }
};

/// An element type: fixed, a parameter of K, or computed from it.
template <class K>
struct OperandType {
  ElementType fixed = ElementType::f32;
  ElementType K::*member = nullptr;
  ElementType (*function)(const K&) = nullptr;
  constexpr OperandType() = default;
  constexpr OperandType(ElementType type) : fixed(type) {}
  constexpr OperandType(ElementType K::*of) : member(of) {}
  template <class F>
  requires std::is_convertible_v<F, ElementType (*)(const K&)>
  constexpr OperandType(F of) : function(of) {}
  [[nodiscard]] constexpr ElementType operator()(const K& spec) const {
    return function != nullptr ? function(spec) : member != nullptr ? spec.*member : fixed;
  }
};

template <class K>
struct ArgumentRow {
  using Operands = typename K::Operands;
  using Memory = DeviceRange Operands::*;

  ArgumentInfo info;
  Memory memory = nullptr;
  OperandType<K> type;
  ElementCount<K> elements;
  bool (*present)(const K&) = nullptr;
  bool (*read)(const K&) = nullptr;
  std::uint32_t (*alignment)(const K&) = nullptr;
  RepackedRows (*rows)(const K&) = nullptr;
  std::uint64_t (*bits)(const K&, const Operands&) = nullptr;
  void (*set)(Operands&, double) = nullptr;
  TensorMapUse (*map)(const K&, const Operands&) = nullptr;

  [[nodiscard]] static constexpr ArgumentRow input(std::string_view name, Memory memory,
                                                   OperandType<K> type, ElementCount<K> elements,
                                                   std::string_view doc) {
    return in_memory(ArgumentRole::Input, name, memory, type, elements, doc);
  }
  [[nodiscard]] static constexpr ArgumentRow output(std::string_view name, Memory memory,
                                                    OperandType<K> type, ElementCount<K> elements,
                                                    std::string_view doc) {
    return in_memory(ArgumentRole::Output, name, memory, type, elements, doc);
  }
  [[nodiscard]] static constexpr ArgumentRow in_out(std::string_view name, Memory memory,
                                                    OperandType<K> type, ElementCount<K> elements,
                                                    std::string_view doc) {
    return in_memory(ArgumentRole::InOut, name, memory, type, elements, doc);
  }
  /// Provided by the launcher: `Describe<K>::workspace` says how much.
  [[nodiscard]] static constexpr ArgumentRow workspace() {
    ArgumentRow row;
    row.info =
        named("workspace", ArgumentRole::Workspace, "intermediate results, from the launcher");
    return row;
  }
  /// A number passed at the launch: a float, or a 32- or 64-bit integer member of the operands.
  template <auto kMember>
  [[nodiscard]] static constexpr ArgumentRow scalar(std::string_view name, std::string_view doc) {
    using T = detail::TypeOfMember<kMember>;
    ArgumentRow row;
    row.info = named(name, ArgumentRole::Scalar, doc, scalar_type<T>());
    row.bits = [](const K&, const Operands& operands) { return bits_of(operands.*kMember); };
    row.set = [](Operands& operands, double value) { operands.*kMember = static_cast<T>(value); };
    return row;
  }
  /// A parameter that the code takes at run time, declared in PTX as `type`.
  template <auto kMember>
  [[nodiscard]] static constexpr ArgumentRow shape(std::string_view name,
                                                   ptx::Type type = ptx::Type::u32) {
    ArgumentRow row;
    row.info = named(name, ArgumentRole::Shape, "the parameter of that name", type);
    row.bits = [](const K& spec, const Operands&) { return bits_of(spec.*kMember); };
    return row;
  }
  /// A map of an operand for tensor copies (`tensor_map_param`), encoded at the launch.
  [[nodiscard]] static constexpr ArgumentRow tensor_map(
      std::string_view name, TensorMapUse (*of)(const K&, const Operands&), std::string_view doc) {
    ArgumentRow row;
    row.info = named(name, ArgumentRole::TensorMap, doc);
    row.map = of;
    return row;
  }
  /// What the caller promises; not passed to the kernel.
  template <auto kMember>
  [[nodiscard]] static constexpr ArgumentRow promise(std::string_view name, std::string_view doc) {
    ArgumentRow row;
    row.info = named(name, ArgumentRole::Promise, doc);
    row.set = [](Operands& operands, double value) { operands.*kMember = value != 0; };
    return row;
  }

  /// An output may be identical to this input: each element is read before it is written.
  [[nodiscard]] constexpr ArgumentRow may_alias(std::string_view other) const {
    ArgumentRow row = *this;
    row.info.may_alias[row.info.may_alias[0].empty() ? 0 : 1] = other;
    return row;
  }
  /// The operand is only there if `is_present(spec)`.
  [[nodiscard]] constexpr ArgumentRow only_if(bool (*is_present)(const K&)) const {
    ArgumentRow row = *this;
    row.present = is_present;
    row.info.optional = true;
    return row;
  }
  /// The kernel also reads this output if `is_read(spec)`.
  [[nodiscard]] constexpr ArgumentRow read_if(bool (*is_read)(const K&)) const {
    ArgumentRow row = *this;
    row.read = is_read;
    return row;
  }
  /// The kernel needs more than an element's alignment, in bytes.
  [[nodiscard]] constexpr ArgumentRow aligned(std::uint32_t (*bytes)(const K&)) const {
    ArgumentRow row = *this;
    row.alignment = bytes;
    return row;
  }
  /// The operand may be repacked rows; its type is b8 where it is.
  [[nodiscard]] constexpr ArgumentRow repacked(RepackedRows (*rows_of)(const K&)) const {
    ArgumentRow row = *this;
    row.rows = rows_of;
    return row;
  }
  /// Range of random values, for verification.
  [[nodiscard]] constexpr ArgumentRow values(double low, double high) const {
    ArgumentRow row = *this;
    row.info.low = low;
    row.info.high = high;
    return row;
  }

  /// Size in the argument block, bytes; 0: not passed.
  [[nodiscard]] constexpr std::uint32_t size() const noexcept {
    if (info.role == ArgumentRole::Promise) return 0;
    if (info.role == ArgumentRole::TensorMap) return kTensorMapBytes;
    if (info.scalar == ptx::Type::none || info.scalar == ptx::Type::u64) return 8;
    return 4;
  }
  /// Of the operand's address, bytes.
  [[nodiscard]] constexpr std::uint32_t alignment_for(const K& spec) const {
    const std::uint32_t natural = ptxgen::info(type(spec)).alignment;
    const std::uint32_t wanted = alignment == nullptr ? natural : alignment(spec);
    return wanted > natural ? wanted : natural;
  }
  [[nodiscard]] constexpr OperandUse use(const K& spec, const Operands& operands) const {
    return {info.name,
            operands.*memory,
            type(spec),
            elements(spec),
            alignment_for(spec),
            present == nullptr || present(spec),
            is_written(info.role)};
  }

 private:
  [[nodiscard]] static constexpr ArgumentInfo named(std::string_view name, ArgumentRole role,
                                                    std::string_view doc,
                                                    ptx::Type scalar = ptx::Type::none) {
    ArgumentInfo info;
    info.name = name;
    info.role = role;
    info.doc = doc;
    info.scalar = scalar;
    return info;
  }
  [[nodiscard]] static constexpr ArgumentRow in_memory(ArgumentRole role, std::string_view name,
                                                       Memory memory, OperandType<K> type,
                                                       ElementCount<K> elements,
                                                       std::string_view doc) {
    ArgumentRow row;
    row.info = named(name, role, doc);
    row.memory = memory;
    row.type = type;
    row.elements = elements;
    return row;
  }
  template <class T>
  [[nodiscard]] static constexpr ptx::Type scalar_type() {
    if constexpr (std::is_same_v<T, float>) return ptx::Type::f32;
    if constexpr (std::is_same_v<T, std::uint32_t>) return ptx::Type::u32;
    if constexpr (std::is_same_v<T, std::int32_t>) return ptx::Type::s32;
    if constexpr (std::is_same_v<T, std::uint64_t>) return ptx::Type::u64;
    return ptx::Type::none;
  }
  template <class T>
  [[nodiscard]] static std::uint64_t bits_of(const T& value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  }
};

// From Describe<K> to a KernelDescription -------------------------------------------------------

/// Bytes of the longest argument block.
inline constexpr std::size_t kMaxArgumentBytes = 512;

namespace detail {

template <class K>
struct Traits {
  using D = Describe<K>;
  using Operands = typename K::Operands;
  static constexpr std::size_t kParameters = std::size(D::parameters);
  static constexpr std::size_t kArguments = std::size(D::arguments);
  using EachParameter = std::make_index_sequence<kParameters>;
  using EachArgument = std::make_index_sequence<kArguments>;

  static constexpr auto kParameterInfo = [] {
    std::array<ParameterInfo, kParameters> infos;
    for (std::size_t i = 0; i < kParameters; ++i) infos[i] = D::parameters[i].info;
    return infos;
  }();
  static constexpr auto kArgumentInfo = [] {
    std::array<ArgumentInfo, kArguments> infos;
    for (std::size_t i = 0; i < kArguments; ++i) infos[i] = D::arguments[i].info;
    return infos;
  }();
  /// Offsets in the argument block, as PTX lays parameters out; the last one is the size.
  static constexpr auto kOffsets = [] {
    std::array<std::uint32_t, kArguments + 1> offsets{};
    std::uint32_t end = 0;
    for (std::size_t i = 0; i < kArguments; ++i) {
      const std::uint32_t size = D::arguments[i].size();
      const std::uint32_t alignment = size < kTensorMapAlignment ? size : kTensorMapAlignment;
      if (size != 0) end = (end + alignment - 1) / alignment * alignment;
      offsets[i] = end;
      end += size;
    }
    offsets[kArguments] = end;
    return offsets;
  }();

  static constexpr std::size_t kMaps = [] {
    std::size_t count = 0;
    for (const auto& row : D::arguments) count += row.map != nullptr ? 1 : 0;
    return count;
  }();
  /// Offsets of the tensor maps in the argument block.
  static constexpr auto kMapOffsets = [] {
    std::array<std::uint32_t, kMaps> offsets{};
    std::size_t at = 0;
    for (std::size_t i = 0; i < kArguments; ++i) {
      if (D::arguments[i].map != nullptr) offsets[at++] = kOffsets[i];
    }
    return offsets;
  }();

  static const K& of(const void* spec) { return *static_cast<const K*>(spec); }
  static const Operands& operands_of(const void* operands) {
    return *static_cast<const Operands*>(operands);
  }

  /// Whether arguments i and j may be identical.
  static constexpr bool may_be_same(std::size_t i, std::size_t j) {
    const auto names = [](std::size_t from, std::size_t to) {
      for (const std::string_view name : D::arguments[from].info.may_alias) {
        if (!name.empty() && name == D::arguments[to].info.name) return true;
      }
      return false;
    };
    return names(i, j) || names(j, i);
  }
  static constexpr std::size_t kMemory = [] {
    std::size_t count = 0;
    for (const auto& row : D::arguments) count += is_memory(row.info.role) ? 1 : 0;
    return count;
  }();
  /// Indices of the arguments in device memory.
  static constexpr auto kMemoryRows = [] {
    std::array<std::size_t, kMemory> rows{};
    std::size_t at = 0;
    for (std::size_t i = 0; i < kArguments; ++i) {
      if (is_memory(D::arguments[i].info.role)) rows[at++] = i;
    }
    return rows;
  }();
  static bool same(std::size_t i, std::size_t j) {
    return may_be_same(kMemoryRows[i], kMemoryRows[j]);
  }

  template <std::size_t kFirst, std::size_t kSecond>
  static constexpr bool together(const std::array<OperandUse, kMemory>& uses) {
    if constexpr (kFirst >= kSecond) {
      return true;
    } else {
      constexpr std::size_t i = kMemoryRows[kFirst];
      constexpr std::size_t j = kMemoryRows[kSecond];
      return may_be_together(uses[kFirst], uses[kSecond], may_be_same(i, j));
    }
  }
  template <std::size_t kFirst, std::size_t... J>
  static constexpr bool together_with(const std::array<OperandUse, kMemory>& uses,
                                      std::index_sequence<J...>) {
    return (together<kFirst, J>(uses) && ...);
  }
  /// The memory that argument kMemoryRows[kIndex] takes, if nothing about it is wrong or unusual.
  struct Extent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool good = true;
  };
  template <std::size_t kIndex>
  static constexpr Extent extent(const K& spec, const Operands& operands) {
    constexpr const ArgumentRow<K>& row = D::arguments[kMemoryRows[kIndex]];
    const DeviceRange& memory = operands.*row.memory;
    if (row.present != nullptr && !row.present(spec)) return {0, 0, memory.address == 0};
    const ElementType type = row.type(spec);
    const ElementInfo& element = ptxgen::info(type);
    const std::uint64_t elements = row.elements(spec);
    std::uint64_t alignment = element.alignment;
    if constexpr (row.alignment != nullptr) {
      const std::uint64_t own = row.alignment(spec);
      if (own > alignment) alignment = own;
    }
    const std::uint64_t needs = elements * element.block_bytes;
    const bool simple = elements >> 48 == 0 && element.block_values == 1 && memory.address != 0 &&
                        memory.address >> 56 == 0;
    const bool typed = memory.type == ptx::Type::none || memory.type == element.type;
    return {memory.address, memory.address + needs,
            simple && typed && memory.bytes >= needs && memory.address % alignment == 0};
  }
  template <std::size_t kFirst, std::size_t kSecond>
  static constexpr bool disjoint(const std::array<Extent, kMemory>& extents) {
    constexpr auto written = [](std::size_t i) {
      return is_written(D::arguments[kMemoryRows[i]].info.role);
    };
    if constexpr (kFirst >= kSecond || !(written(kFirst) || written(kSecond))) {
      return true;
    } else {
      constexpr bool kSame = may_be_same(kMemoryRows[kFirst], kMemoryRows[kSecond]);
      const Extent& a = extents[kFirst];
      const Extent& b = extents[kSecond];
      return a.end <= b.begin || b.end <= a.begin || (kSame && a.begin == b.begin);
    }
  }
  template <std::size_t kFirst, std::size_t... J>
  static constexpr bool disjoint_from(const std::array<Extent, kMemory>& extents,
                                      std::index_sequence<J...>) {
    return (disjoint<kFirst, J>(extents) && ...);
  }
  template <std::size_t... I>
  static void check_memory(const K& spec, const Operands& operands,
                           std::index_sequence<I...> each) {
    const std::array<Extent, kMemory> extents = {extent<I>(spec, operands)...};
    const bool good = (extents[I].good && ...) && (disjoint_from<I>(extents, each) && ...);
    if (!good) [[unlikely]] {
      check_closely(spec, operands, each);
    }
  }
  template <std::size_t... I>
  [[gnu::noinline]] static void check_closely(const K& spec, const Operands& operands,
                                              std::index_sequence<I...> each) {
    const std::array<OperandUse, kMemory> uses = {
        D::arguments[kMemoryRows[I]].use(spec, operands)...};
    const bool good = (usable(uses[I]) && ...) && (together_with<I>(uses, each) && ...);
    if (!good) refuse_operands(D::text.name, shape_text(description(), &spec), uses, same);
  }
  // A value below its minimum leaves nothing to launch, which the geometry refuses.
  template <std::size_t... I>
  static bool within_maxima(const K& spec, std::index_sequence<I...>) {
    return ((D::parameters[I].get(spec) <= D::parameters[I].info.max &&
             D::parameters[I].get(spec) % D::parameters[I].info.multiple_of == 0) &&
            ...);
  }

  static void check(const void* spec, const void* operands) {
    const K& k = of(spec);
    const Operands& o = operands_of(operands);
    if (!within_maxima(k, EachParameter{})) [[unlikely]] {
      check_spec(k);
    }
    check_memory(k, o, std::make_index_sequence<kMemory>{});
    if constexpr (requires { D::check(k, o); }) D::check(k, o);
  }
  static void values(const void* spec, std::uint64_t* values) {
    for (std::size_t i = 0; i < kParameters; ++i) values[i] = D::parameters[i].get(of(spec));
  }
  static void check_spec(const K& spec) {
    std::array<std::uint64_t, kParameters> all;
    values(&spec, all.data());
    check_values(description(), all);
  }
  static LaunchGeometry geometry(const void* spec, const ptx::Gpu& gpu) {
    if constexpr (requires { D::geometry(of(spec), gpu); }) {
      return D::geometry(of(spec), gpu);
    } else if constexpr (requires { of(spec).geometry(gpu); }) {
      return of(spec).geometry(gpu);
    } else {
      return of(spec).geometry();
    }
  }
  static KernelKey key(const void* spec) {
    if constexpr (requires { D::key(of(spec)); }) {
      return D::key(of(spec));
    } else {
      KernelKey key;
      constexpr std::size_t kValues = std::tuple_size_v<decltype(key.values)>;
      static_assert(specializing() <= kValues, "give Describe<K> a function `key`");
      std::size_t at = 0;
      for (const auto& row : D::parameters) {
        if (row.info.specializes && at < kValues) key.values[at++] = row.get(of(spec));
      }
      return key;
    }
  }
  static constexpr std::size_t specializing() {
    std::size_t count = 0;
    for (const auto& row : D::parameters) count += row.info.specializes ? 1 : 0;
    return count;
  }
  template <std::size_t... I>
  static void pack_all(const K& spec, const Operands& operands, std::uint64_t workspace,
                       std::byte* block, std::index_sequence<I...>) {
    const auto put = [&](const ArgumentRow<K>& row, std::uint32_t at) {
      if (row.size() == 0) return;
      if (row.map != nullptr) {
        const TensorMapUse use = row.map(spec, operands);
        std::memcpy(block + at, &use, sizeof use);
        return;
      }
      std::uint64_t value = workspace;
      if (row.memory != nullptr) value = (operands.*row.memory).address;
      if (row.bits != nullptr) value = row.bits(spec, operands);
      if (row.size() == 8) {
        std::memcpy(block + at, &value, 8);
      } else {
        const auto word = static_cast<std::uint32_t>(value);
        std::memcpy(block + at, &word, 4);
      }
    };
    (put(D::arguments[I], kOffsets[I]), ...);
  }
  static void pack(const void* spec, const void* operands, std::uint64_t workspace,
                   std::byte* block) {
    pack_all(of(spec), operands_of(operands), workspace, block, EachArgument{});
  }
  static ptx::Module build(const void* spec, const ptx::Target& target) {
    check_spec(of(spec));
    if constexpr (requires { D::build(of(spec), target); }) {
      return D::build(of(spec), target);
    } else {
      return of(spec).build(target).module();
    }
  }
  static KernelCost cost(const void* spec) {
    if constexpr (requires { D::cost(of(spec)); }) {
      return D::cost(of(spec));
    } else {
      return of(spec).cost();
    }
  }
  static ElementType type(const void* spec, std::size_t i) {
    return D::arguments[i].type(of(spec));
  }
  static std::uint64_t elements(const void* spec, std::size_t i) {
    return present(spec, i) ? D::arguments[i].elements(of(spec)) : 0;
  }
  static std::uint32_t alignment(const void* spec, std::size_t i) {
    return D::arguments[i].alignment_for(of(spec));
  }
  static RepackedRows repacked(const void* spec, std::size_t i) {
    return D::arguments[i].rows == nullptr ? RepackedRows{} : D::arguments[i].rows(of(spec));
  }
  static bool present(const void* spec, std::size_t i) {
    return D::arguments[i].present == nullptr || D::arguments[i].present(of(spec));
  }
  static bool read(const void* spec, std::size_t i) {
    const ArgumentRow<K>& row = D::arguments[i];
    return is_memory(row.info.role) &&
           (row.info.role != ArgumentRole::Output || (row.read != nullptr && row.read(of(spec))));
  }
  static K make(std::span<const std::uint64_t> values) {
    check_values(description(), values);
    K spec;
    for (std::size_t i = 0; i < kParameters; ++i) D::parameters[i].set(spec, values[i]);
    return spec;
  }
  static ErasedValue make_spec(std::span<const std::uint64_t> values) {
    return ErasedValue::of(make(values));
  }
  static ErasedValue make_operands(std::span<const OperandValue> values) {
    Operands operands;
    for (const OperandValue& value : values) {
      const ArgumentRow<K>& row = D::arguments[argument_index(description(), value.name)];
      if (row.memory != nullptr) operands.*row.memory = value.memory;
      if (row.set != nullptr) row.set(operands, value.number);
    }
    return ErasedValue::of(std::move(operands));
  }
  static OperandUse use(const void* spec, const void* operands, std::size_t i) {
    return D::arguments[i].use(of(spec), operands_of(operands));
  }
  static std::uint64_t bits(const void* spec, const void* operands, std::size_t i) {
    const ArgumentRow<K>& row = D::arguments[i];
    return row.bits == nullptr ? 0 : row.bits(of(spec), operands_of(operands));
  }
  static std::vector<std::vector<std::uint64_t>> cases() {
    std::vector<std::vector<std::uint64_t>> all;
    for (const K& spec : D::cases) values(&spec, all.emplace_back(kParameters).data());
    return all;
  }

  static std::vector<std::uint64_t> for_layer(std::span<const std::uint64_t> from,
                                              const LayerSizes& sizes) {
    const K spec = D::for_layer(make(from), sizes);
    std::vector<std::uint64_t> all(kParameters);
    values(&spec, all.data());
    return all;
  }
  static constexpr KernelBatch make_batch() {
    KernelBatch batch;
    if constexpr (requires { D::batch; }) {
      using Twin = decltype(D::twin(std::declval<const K&>()));
      batch = D::batch;
      batch.twin = Traits<Twin>::description;
      batch.twin_of = [](const void* spec) { return ErasedValue::of(D::twin(of(spec))); };
      batch.for_layer = for_layer;
    }
    return batch;
  }
  static constexpr KernelBatch kBatch = make_batch();

  static constexpr KernelDescription make_description() {
    static_assert(kOffsets[kArguments] <= kMaxArgumentBytes);
    KernelDescription d;
    d.name = D::text.name;
    d.doc = D::text.doc;
    d.access_pattern = D::text.access_pattern;
    d.parameters = kParameterInfo;
    d.arguments = kArgumentInfo;
    d.name_hash = name_hash(D::text.name);
    d.type = &kTypeTag<K>;
    d.block_bytes = kOffsets[kArguments];
    d.tensor_maps = kMapOffsets;
    if constexpr (requires { D::needs_specific_target; }) {
      d.needs_specific = D::needs_specific_target;
    }
    d.check_of = check;
    if constexpr (requires(const K& k, const ptx::Target& t) { D::check_target(k, t); }) {
      d.check_target_of = [](const void* k, const ptx::Target& t) { D::check_target(of(k), t); };
    }
    if constexpr (requires(const K& k) { D::implementation(k); }) {
      d.implementation_of = [](const void* k) -> std::string_view {
        return D::implementation(of(k));
      };
    }
    d.geometry_of = geometry;
    d.key_of = key;
    if constexpr (requires(const K& k) { D::workspace(k); }) {
      d.workspace_of = [](const void* spec) -> WorkspaceNeed { return D::workspace(of(spec)); };
    }
    d.pack_of = pack;
    d.build_of = build;
    d.cost_of = cost;
    if constexpr (requires(const Operands& o) { D::may_start_early(o); }) {
      d.may_start_early = [](const void* o) -> bool { return D::may_start_early(operands_of(o)); };
    }
    if constexpr (requires { D::family; }) d.family = &D::family;
    if constexpr (requires { D::batch; }) d.batch = &kBatch;
    d.type_of = type;
    d.elements_of = elements;
    d.alignment_of = alignment;
    d.repacked_of = repacked;
    d.is_present_of = present;
    d.is_read_of = read;
    d.values_of = values;
    d.reference_of = [](const void* spec, HostOperands& host) { D::reference(of(spec), host); };
    d.bound_of = [](const void* spec) { return D::bound(of(spec)); };
    if constexpr (requires(const K& k, const Operands& o, const HostRun& r) { D::host(k, o, r); }) {
      d.host_of = [](const void* k, const void* o, const HostRun& run) {
        D::host(of(k), operands_of(o), run);
      };
    }
    d.cases = cases;
    d.make_spec = make_spec;
    d.make_operands = make_operands;
    d.copy_spec = [](const void* spec) { return ErasedValue::of(K(of(spec))); };
    d.copy_operands = [](const void* o) { return ErasedValue::of(Operands(operands_of(o))); };
    d.use_of = use;
    d.bits_of = bits;
    return d;
  }
  static const KernelDescription& description();
};

}  // namespace detail

/// The description of a kernel type.
template <Described K>
inline constexpr KernelDescription kDescription = detail::Traits<K>::make_description();

template <class K>
const KernelDescription& detail::Traits<K>::description() {
  return kDescription<K>;
}

/// Throws `Error` (Stage::Build, "bad-parameter") unless each parameter of the kernel has one of
/// its values.
template <Described K>
void check_parameters(const K& spec) {
  std::array<std::uint64_t, std::size(Describe<K>::parameters)> values;
  kDescription<K>.values_of(&spec, values.data());
  check_values(kDescription<K>, values);
}

}  // namespace ptxgen::inline v0
