// src/frames/watch.cpp - watches as text, what they show
#include "ptxgen/frames/watch.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/half.hpp"
#include "support/join.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0::frames {

using ptx::Type;

namespace {

[[noreturn]] void refuse_watch(std::string_view watch, std::string_view why) {
  throw Error(Stage::Emulate, "watch", format_text("watch '{}': {}", watch, why));
}

Type element_type(std::string_view name) {
  constexpr Type kTypes[] = {Type::u8,  Type::u16, Type::u32, Type::u64,  Type::s8,  Type::s16,
                             Type::s32, Type::s64, Type::f16, Type::bf16, Type::f32, Type::f64};
  const auto* const found = std::ranges::find(kTypes, name, [](Type t) { return ptx::name(t); });
  return found == std::end(kTypes) ? Type::none : *found;
}

template <class T>
std::string shortest(T value, int digits = 0) {
  char text[64];
  const auto end = digits == 0 ? std::to_chars(text, text + sizeof text, value)
                               : std::to_chars(text, text + sizeof text, value,
                                               std::chars_format::general, digits);
  return {text, end.ptr};
}

std::int64_t signed_value(std::uint64_t bits, Type type) {
  const unsigned unused = 64 - std::clamp(ptx::bits(type), 1u, 64u);
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

bool is_signed(Type type) { return ptx::kind(type) == ptx::TypeKind::Signed; }

/// A register by its name, in any function; a number at the end may be that of a numbered one.
bool names_register(const ptx::Module& module, const ptx::Function& function,
                    std::string_view name) {
  const std::size_t dot = name.rfind('.');
  const std::string_view vector = dot == name.npos ? name : name.substr(0, dot);
  return std::ranges::any_of(function.registers, [&](const ptx::RegisterDecl& decl) {
    const std::string_view declared = module.text(decl.name);
    if (!decl.numbered) return declared == name || (decl.vector > 1 && declared == vector);
    if (!name.starts_with(declared)) return false;
    const auto number = parse_number<std::uint32_t>(name.substr(declared.size()));
    return number && *number < decl.count;
  });
}

struct SharedVariable {
  Type type = Type::none;
  std::uint64_t bytes = 0;
};

/// A shared variable by its name, with the declared type.
std::optional<SharedVariable> find_shared(const ptx::Module& module, std::string_view name) {
  const auto in = [&](const std::vector<ptx::Variable>& variables) {
    return std::ranges::find_if(variables, [&](const ptx::Variable& variable) {
      return variable.space == ptx::Space::Shared && module.text(variable.name) == name;
    });
  };
  for (const ptx::Function& function : module.functions) {
    if (const auto found = in(function.variables); found != function.variables.end()) {
      return SharedVariable{found->type, ptx::size_in_bytes(*found)};
    }
  }
  const auto found = in(module.variables);
  if (found == module.variables.end()) return std::nullopt;
  return SharedVariable{found->type, ptx::size_in_bytes(*found)};
}

std::vector<std::string_view> shared_names(const ptx::Module& module) {
  std::vector<std::string_view> names;
  const auto add = [&](const std::vector<ptx::Variable>& variables) {
    for (const ptx::Variable& variable : variables) {
      if (variable.space == ptx::Space::Shared) names.push_back(module.text(variable.name));
    }
  };
  add(module.variables);
  for (const ptx::Function& function : module.functions) add(function.variables);
  return names;
}

std::uint64_t clipped(const Watch& watch, std::uint64_t elements) {
  if (watch.first >= elements) return 0;
  const std::uint64_t rest = elements - watch.first;
  return watch.count == 0 ? std::min(rest, kMaxWatched) : std::min(watch.count, rest);
}

/// The elements of `bytes`, little endian.
std::vector<std::uint64_t> elements_of(std::span<const std::byte> bytes, Type type) {
  const std::size_t size = ptx::bytes(type);
  std::vector<std::uint64_t> all;
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, std::min<std::size_t>(size, sizeof bits));
    all.push_back(bits);
  }
  return all;
}

WatchedValues read_buffer(const emulator::Device& device, const Watch& watch,
                          const Buffer& buffer) {
  WatchedValues values;
  values.name = watch.name;
  values.kind = WatchedValues::Kind::Global;
  values.type = watch.type == Type::none ? buffer.type : watch.type;
  values.first = watch.first;
  const std::uint64_t size = ptx::bytes(values.type);
  const std::uint64_t count = clipped(watch, buffer.elements * ptx::bytes(buffer.type) / size);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * size));
  if (count != 0) device.read(buffer.address + watch.first * size, bytes);
  values.bits = elements_of(bytes, values.type);
  values.known.assign(values.bits.size(), true);
  return values;
}

WatchedValues read_shared(const emulator::Moment& moment, const Watch& watch,
                          const SharedVariable& variable) {
  WatchedValues values;
  values.name = watch.name;
  values.kind = WatchedValues::Kind::Shared;
  values.type = watch.type == Type::none ? variable.type : watch.type;
  values.first = watch.first;
  const emulator::Device::Extent extent = moment.shared_variable(watch.name);
  const std::uint64_t size = ptx::bytes(values.type);
  const std::uint64_t count = clipped(watch, extent.bytes / size);
  if (count == 0) return values;
  const std::uint64_t start = extent.start + watch.first * size;
  values.bits = elements_of(moment.shared().subspan(start, count * size), values.type);
  for (std::uint64_t i = 0; i < count; ++i) {
    values.known.push_back(moment.shared_written(start + i * size, size));
  }
  return values;
}

WatchedValues read_register(const emulator::Moment& moment, const Watch& watch) {
  WatchedValues values;
  values.name = watch.name;
  const emulator::RegisterLanes lanes = moment.register_lanes(watch.name);
  if (lanes.type == Type::none) return values;
  values.kind = WatchedValues::Kind::Register;
  values.type = watch.type == Type::none ? lanes.type : watch.type;
  values.first = 32 * std::uint64_t{moment.warp()} + watch.first;
  const std::uint64_t threads = moment.block_size().count() - 32 * std::uint64_t{moment.warp()};
  const std::uint64_t count = clipped(watch, std::min<std::uint64_t>(threads, 32));
  for (std::uint64_t lane = watch.first; lane < watch.first + count; ++lane) {
    values.bits.push_back(lanes.low[lane]);
    values.known.push_back(((lanes.known >> lane) & 1u) != 0);
  }
  return values;
}

const Buffer* find_buffer(std::span<const Buffer> buffers, std::string_view name) {
  const auto found = std::ranges::find(buffers, name, &Buffer::name);
  return found == buffers.end() ? nullptr : &*found;
}

}  // namespace

Watch parse_watch(std::string_view text) {
  constexpr std::string_view kForm =
      "expected NAME, NAME[FIRST] or NAME[FIRST..LAST], and perhaps :TYPE, as %f3[0..7]:f32";
  Watch watch;
  std::string_view rest = text;
  if (const std::size_t colon = rest.rfind(':'); colon != rest.npos) {
    watch.type = element_type(rest.substr(colon + 1));
    if (watch.type == Type::none) {
      refuse_watch(text, format_text("'{}' is no type; u8 to u64, s8 to s64, f16, bf16, f32, f64",
                                     rest.substr(colon + 1)));
    }
    rest = rest.substr(0, colon);
  }
  if (const std::size_t open = rest.find('['); open != rest.npos) {
    if (!rest.ends_with(']')) refuse_watch(text, kForm);
    const std::string_view range = rest.substr(open + 1, rest.size() - open - 2);
    const std::size_t dots = range.find("..");
    const auto first = parse_number<std::uint64_t>(range.substr(0, dots));
    const auto last =
        dots == range.npos ? first : parse_number<std::uint64_t>(range.substr(dots + 2));
    if (!first || !last) refuse_watch(text, kForm);
    if (*last < *first) refuse_watch(text, format_text("{} is before {}", *last, *first));
    if (*last - *first >= kMaxWatched) {
      refuse_watch(text, format_text("more than {} elements", kMaxWatched));
    }
    watch.first = *first;
    watch.count = *last - *first + 1;
    rest = rest.substr(0, open);
  }
  if (rest.empty() || rest.find_first_of(" []:") != rest.npos) refuse_watch(text, kForm);
  watch.name = std::string(rest);
  return watch;
}

std::string to_text(const Watch& watch) {
  std::string text = watch.name;
  if (watch.count == 1) {
    text += format_text("[{}]", watch.first);
  } else if (watch.count != 0) {
    text += format_text("[{}..{}]", watch.first, watch.first + watch.count - 1);
  }
  if (watch.type != Type::none) text += format_text(":{}", ptx::name(watch.type));
  return text;
}

void check_watches(const emulator::Program& program, std::string_view kernel,
                   std::span<const Watch> watches, std::span<const Buffer> buffers) {
  const ptx::Module& module = program.module();
  for (const Watch& watch : watches) {
    const auto check_size = [&](std::uint64_t bytes, Type declared) {
      const std::uint64_t size = ptx::bytes(watch.type == Type::none ? declared : watch.type);
      const std::uint64_t elements = bytes / std::max<std::uint64_t>(size, 1);
      if (watch.first + std::max<std::uint64_t>(watch.count, 1) <= elements) return;
      refuse_watch(to_text(watch), format_text("it has {}", count_text(elements, "element")));
    };
    if (const Buffer* const buffer = find_buffer(buffers, watch.name)) {
      check_size(buffer->elements * ptx::bytes(buffer->type), buffer->type);
    } else if (const auto shared = find_shared(module, watch.name)) {
      // The size of dynamic shared memory is that of the launch.
      if (shared->bytes != 0) check_size(shared->bytes, shared->type);
    } else if (std::ranges::any_of(module.functions, [&](const ptx::Function& function) {
                 return names_register(module, function, watch.name);
               })) {
      if (watch.first + watch.count > 32) {
        refuse_watch(to_text(watch), "a warp has lanes 0 to 31");
      }
    } else {
      const auto names = shared_names(module);
      refuse_watch(
          to_text(watch),
          format_text(
              "'{}' is no register of kernel '{}', no shared variable ({}) and no buffer "
              "({})",
              watch.name, kernel, names.empty() ? "there are none" : join_text(names),
              buffers.empty() ? "there are none" : join_text(buffers, ", ", &Buffer::name)));
    }
  }
}

std::string value_text(std::uint64_t bits, Type type) {
  switch (type) {
    // Enough digits to distinguish the values of the format.
    case Type::f16:
      return shortest(f16_to_float(static_cast<std::uint16_t>(bits)), 5);
    case Type::bf16:
      return shortest(bf16_to_float(static_cast<std::uint16_t>(bits)), 4);
    case Type::f32:
      return shortest(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case Type::f64:
      return shortest(std::bit_cast<double>(bits));
    default:
      return is_signed(type) ? std::to_string(signed_value(bits, type)) : std::to_string(bits);
  }
}

double value_of(std::uint64_t bits, Type type) noexcept {
  switch (type) {
    case Type::f16:
      return static_cast<double>(f16_to_float(static_cast<std::uint16_t>(bits)));
    case Type::bf16:
      return static_cast<double>(bf16_to_float(static_cast<std::uint16_t>(bits)));
    case Type::f32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case Type::f64:
      return std::bit_cast<double>(bits);
    default:
      return is_signed(type) ? static_cast<double>(signed_value(bits, type))
                             : static_cast<double>(bits);
  }
}

std::vector<WatchedValues> read_watches(const emulator::Moment& moment,
                                        const emulator::Device& device,
                                        std::span<const Watch> watches,
                                        std::span<const Buffer> buffers) {
  std::vector<WatchedValues> all;
  for (const Watch& watch : watches) {
    if (const Buffer* const buffer = find_buffer(buffers, watch.name)) {
      all.push_back(read_buffer(device, watch, *buffer));
    } else if (const auto shared = find_shared(moment.module(), watch.name)) {
      all.push_back(read_shared(moment, watch, *shared));
    } else {
      all.push_back(read_register(moment, watch));
    }
  }
  return all;
}

std::vector<WatchedValues> read_watches(const emulator::Device& device,
                                        std::span<const Watch> watches,
                                        std::span<const Buffer> buffers) {
  std::vector<WatchedValues> all;
  for (const Watch& watch : watches) {
    const Buffer* const buffer = find_buffer(buffers, watch.name);
    if (buffer != nullptr) all.push_back(read_buffer(device, watch, *buffer));
  }
  return all;
}

}  // namespace ptxgen::inline v0::frames
