// src/emulator/machine/system_calls.cpp - functions that the emulator provides
#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>

#include "emulator/machine/warp.hpp"
#include "emulator/machine/warp_steps.hpp"
#include "emulator/report/report.hpp"
#include "emulator/state/address_space.hpp"
#include "emulator/state/condition_cell.hpp"
#include "emulator/state/windows.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"vprintf", "__assertfail", "malloc", "free",
                                                    "cudaGraphSetConditional"};
/// Maximum length of a string argument.
constexpr std::size_t kMaxStringBytes = 1u << 16;

/// Host bytes of a generic address, or nullptr if some do not exist.
const std::byte* guest_bytes(const Context& context, unsigned lane, std::uint64_t address,
                             std::uint64_t bytes) {
  const Cta& cta = *context.cta;
  const ptx::Space space = window_of(address);
  const std::uint64_t offset = address - window_start(space);
  const auto inside = [&](std::uint64_t size) { return offset <= size && bytes <= size - offset; };
  switch (space) {
    case ptx::Space::Shared:
      return inside(cta.shared_bytes) ? cta.shared + offset : nullptr;
    case ptx::Space::Local:
      return inside(cta.local_stride)
                 ? cta.local + std::uint64_t{context.warp->first_thread + lane} * cta.local_stride +
                       offset
                 : nullptr;
    case ptx::Space::Param:
      return inside(context.grid->parameters.size()) ? context.grid->parameters.data() + offset
                                                     : nullptr;
    default:
      break;
  }
  const Allocation* allocation = context.grid->space->find(address);
  if (allocation == nullptr || allocation->freed ||
      bytes > allocation->start + allocation->bytes - address) {
    return nullptr;
  }
  return context.grid->space->host(address);
}

/// Reads a zero-terminated string; false if memory ends before the zero.
bool guest_string(const Context& context, unsigned lane, std::uint64_t address, std::string& out) {
  out.clear();
  // In pieces of 64 bytes; at the end of memory in smaller ones.
  std::size_t piece = 64;
  while (out.size() < kMaxStringBytes) {
    const std::byte* bytes = guest_bytes(context, lane, address + out.size(), piece);
    if (bytes == nullptr) {
      if (piece == 1) return false;
      piece /= 8;
      continue;
    }
    for (std::size_t i = 0; i < piece; ++i) {
      const auto character = static_cast<char>(bytes[i]);
      if (character == '\0') return true;
      out += character;
    }
  }
  return false;
}

std::uint64_t argument(const Context& context, const ControlDetail& detail, std::size_t index,
                       unsigned lane) {
  if (index >= detail.arguments.size()) return 0;
  const ValuePlace& place = detail.arguments[index];
  if (place.slot.present()) return get_lane(context, place.slot, lane);
  const Cta& cta = *context.cta;
  std::uint64_t value = 0;
  std::memcpy(&value,
              cta.local + std::uint64_t{context.warp->first_thread + lane} * cta.local_stride +
                  context.activation->local_base + place.offset,
              std::min<std::size_t>(place.bytes, sizeof value));
  return value;
}

void set_return_value(const Context& context, const ControlDetail& detail, unsigned lane,
                      std::uint64_t value) {
  if (detail.returns.empty()) return;
  const ValuePlace& place = detail.returns[0];
  if (place.slot.present()) {
    set_lane(context, place.slot, lane, value);
    return;
  }
  const Cta& cta = *context.cta;
  const std::uint64_t thread = context.warp->first_thread + lane;
  const std::uint32_t offset = context.activation->local_base + place.offset;
  const std::size_t bytes = std::min<std::size_t>(place.bytes, sizeof value);
  std::memcpy(cta.local + thread * cta.local_stride + offset, &value, bytes);
  std::uint64_t* written = cta.local_written + thread * (cta.local_stride / 64);
  for (std::uint64_t i = offset; i < offset + bytes; ++i) {
    written[i / 64] |= std::uint64_t{1} << (i % 64);
  }
}

/// One conversion of a format string, without length modifiers: "%-8.3f".
struct Conversion {
  std::string text;  ///< flags, width and precision, with `*` replaced
  char kind = 0;
  bool is_long = false;  ///< 64-bit integer
};

/// Formats with the host's printf, one argument at a time: the kernel's format is not trusted.
class Formatter {
 public:
  Formatter(const Context& context, unsigned lane, std::uint64_t arguments)
      : context_(context), lane_(lane), arguments_(arguments) {}

  bool run(std::string_view format, std::string& out, int& count) {
    while (!format.empty()) {
      const std::size_t percent = format.find('%');
      out += format.substr(0, percent);
      if (percent == std::string_view::npos) break;
      format.remove_prefix(percent + 1);
      if (format.empty()) break;
      if (format.front() == '%') {
        out += '%';
        format.remove_prefix(1);
        continue;
      }
      Conversion conversion;
      if (!parse(format, conversion) || !print(conversion, out)) return false;
      ++count;
    }
    return true;
  }

 private:
  /// Flags, width, precision, length, conversion. The host gets only this form.
  bool parse(std::string_view& format, Conversion& conversion) {
    const auto at = [&](std::string_view set) {
      return !format.empty() && set.find(format.front()) != std::string_view::npos;
    };
    conversion.text = "%";
    for (; at("-+ #0"); format.remove_prefix(1)) {
      if (conversion.text.find(format.front()) == std::string::npos) {
        conversion.text += format.front();
      }
    }
    std::int32_t value = 0;
    if (at("*0123456789")) {
      if (!number(format, value)) return false;
      if (value < 0 && conversion.text.find('-') == std::string::npos) conversion.text += '-';
      conversion.text += std::to_string(std::abs(value));
    }
    if (at(".")) {
      format.remove_prefix(1);
      value = 0;
      if (at("*0123456789") && !number(format, value)) return false;
      // A negative precision counts as none.
      if (value >= 0) conversion.text += '.' + std::to_string(value);
    }
    for (; at("hlLjzt"); format.remove_prefix(1)) {
      if (!at("hL")) conversion.is_long = true;
    }
    if (format.empty()) return false;
    conversion.kind = format.front();
    format.remove_prefix(1);
    return true;
  }

  /// Digits or `*`, clamped to kMax.
  bool number(std::string_view& format, std::int32_t& value) {
    constexpr std::int32_t kMax = 4096;
    if (format.front() == '*') {
      format.remove_prefix(1);
      std::uint64_t requested = 0;
      if (!next(4, requested)) return false;
      value =
          std::clamp(static_cast<std::int32_t>(static_cast<std::uint32_t>(requested)), -kMax, kMax);
      return true;
    }
    value = 0;
    for (; !format.empty() && format.front() >= '0' && format.front() <= '9';
         format.remove_prefix(1)) {
      value = std::min(kMax, value * 10 + (format.front() - '0'));
    }
    return true;
  }

  bool next(unsigned bytes, std::uint64_t& value) {
    arguments_ = (arguments_ + bytes - 1) / bytes * bytes;
    const std::byte* from = guest_bytes(context_, lane_, arguments_, bytes);
    if (from == nullptr) return false;
    value = 0;
    std::memcpy(&value, from, bytes);
    arguments_ += bytes;
    return true;
  }

  template <class T>
  static void append(std::string& out, const std::string& format, T value) {
    char text[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const int length = std::snprintf(text, sizeof text, format.c_str(), value);
#pragma GCC diagnostic pop
    if (length > 0) out.append(text, std::min<std::size_t>(static_cast<std::size_t>(length), 511));
  }

  bool print(const Conversion& conversion, std::string& out) {
    std::uint64_t value = 0;
    switch (conversion.kind) {
      case 'd':
      case 'i':
        if (!next(conversion.is_long ? 8 : 4, value)) return false;
        append(out, conversion.text + "lld",
               conversion.is_long ? static_cast<long long>(value)
                                  : static_cast<long long>(static_cast<std::int32_t>(value)));
        return true;
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        if (!next(conversion.is_long ? 8 : 4, value)) return false;
        append(out, conversion.text + "ll" + conversion.kind,
               static_cast<unsigned long long>(value));
        return true;
      case 'c':
        if (!next(4, value)) return false;
        out += static_cast<char>(value);
        return true;
      case 'p':
        if (!next(8, value)) return false;
        append(out, "%p", reinterpret_cast<void*>(static_cast<std::uintptr_t>(value)));
        return true;
      case 's': {
        if (!next(8, value)) return false;
        std::string text;
        if (!guest_string(context_, lane_, value, text)) return false;
        append(out, conversion.text + "s", text.c_str());
        return true;
      }
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A': {
        if (!next(8, value)) return false;
        append(out, conversion.text + conversion.kind, std::bit_cast<double>(value));
        return true;
      }
      default:
        return false;
    }
  }

  const Context& context_;
  unsigned lane_;
  std::uint64_t arguments_;
};

void print(const Context& context, std::uint32_t statement, const ControlDetail& detail,
           unsigned lane) {
  std::string format;
  std::string text;
  int count = 0;
  const std::uint64_t address = argument(context, detail, 0, lane);
  const bool good =
      guest_string(context, lane, address, format) &&
      Formatter(context, lane, argument(context, detail, 1, lane)).run(format, text, count);
  if (!good) {
    context.grid->reporter->report(context, statement, Rule::InvalidAddress, lane, [&] {
      return FindingText{
          "printf is called with an invalid pointer to its format or arguments, or with an unknown "
          "conversion",
          {}};
    });
    set_return_value(context, detail, lane, static_cast<std::uint64_t>(-1));
    return;
  }
  std::string& printed = context.cta->printed;
  // As in the device's buffer, excess output is lost.
  if (printed.size() + text.size() <= context.grid->options.printf_bytes) printed += text;
  set_return_value(context, detail, lane, static_cast<std::uint64_t>(count));
}

void fail_assertion(const Context& context, std::uint32_t statement, const ControlDetail& detail,
                    unsigned lane) {
  context.grid->reporter->report(context, statement, Rule::Assert, lane, [&] {
    std::string message;
    std::string file;
    std::string function;
    static_cast<void>(guest_string(context, lane, argument(context, detail, 0, lane), message));
    static_cast<void>(guest_string(context, lane, argument(context, detail, 1, lane), file));
    static_cast<void>(guest_string(context, lane, argument(context, detail, 3, lane), function));
    const auto line = static_cast<std::uint32_t>(argument(context, detail, 2, lane));
    return FindingText{
        format_text("assertion '{}' failed in {}, {}:{}", message, function, file, line), {}};
  });
}

/// cudaGraphSetConditional(handle, value); of several threads one wins.
void set_condition(const Context& context, std::uint32_t statement, const ControlDetail& detail,
                   unsigned lane) {
  const std::uint64_t handle = argument(context, detail, 0, lane);
  const Allocation* const found = context.grid->space->find(handle);
  if (found != nullptr && found->kind == AllocationKind::Condition && !found->freed &&
      found->start == handle) {
    auto* const cell = reinterpret_cast<ConditionCell*>(context.grid->space->host(handle));
    const auto value = static_cast<std::uint32_t>(argument(context, detail, 1, lane));
    __atomic_store_n(&cell->value, value, __ATOMIC_RELAXED);
    __atomic_store_n(&cell->is_set, 1u, __ATOMIC_RELAXED);
    return;
  }
  context.grid->reporter->report(context, statement, Rule::InvalidAddress, lane, [&] {
    const bool ended = found != nullptr && found->kind == AllocationKind::Condition;
    return FindingText{
        format_text("cudaGraphSetConditional is called with {}, {}", hex(handle),
                    ended ? "the handle of a graph that was destroyed"
                          : "which is no handle of a condition in this context"),
        {"pass the handle that cuGraphConditionalHandleCreate returned for a graph that exists"}};
  });
}

}  // namespace

bool is_system_function(std::string_view name) noexcept {
  return std::ranges::find(kNames, name) != kNames.end();
}

std::string system_function_names() {
  std::string text;
  for (const std::string_view name : kNames) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

bool call_system(Context& context, std::uint32_t statement, const ControlDetail& detail) {
  const std::uint32_t lanes = context.active;
  if (detail.system == "__assertfail") {
    for_each_lane(lanes, [&](unsigned lane) { fail_assertion(context, statement, detail, lane); });
    kill(*context.cta);
    return false;
  }
  for_each_lane(lanes, [&](unsigned lane) {
    if (detail.system == "vprintf") {
      print(context, statement, detail, lane);
    } else if (detail.system == "cudaGraphSetConditional") {
      set_condition(context, statement, detail, lane);
    } else if (detail.system == "malloc") {
      std::uint64_t address = 0;
      try {
        address = context.grid->space->allocate(argument(context, detail, 0, lane), "device heap",
                                                AllocationKind::Heap);
      } catch (const Error&) {
        address = 0;  // as malloc without memory
      }
      set_return_value(context, detail, lane, address);
    } else {
      const std::uint64_t address = argument(context, detail, 0, lane);
      if (address == 0) return;
      try {
        context.grid->space->free(address);
      } catch (const Error& error) {
        context.grid->reporter->report(context, statement, Rule::InvalidAddress, lane, [&] {
          return FindingText{format_text("free is called with {}: {}", hex(address), error.message),
                             {}};
        });
      }
    }
  });
  return true;
}

}  // namespace ptxgen::inline v0::emulator
