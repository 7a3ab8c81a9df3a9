// ptxgen/frames/watch.hpp - registers and memory that frames show
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/emulator/observer.hpp"

namespace ptxgen::inline v0::frames {

/// A range of global memory with a name.
struct Buffer {
  std::string name;
  std::uint64_t address = 0;
  ptx::Type type = ptx::Type::b32;
  std::uint64_t elements = 0;
};

/// Elements of a register, a shared variable or a buffer. The elements of a register are the lanes
/// of the warp.
struct Watch {
  std::string name;         ///< "%f3", "tile", "y"
  std::uint64_t first = 0;  ///< element
  std::uint64_t count = 0;  ///< elements; 0: as many as there are, at most kMaxWatched
  /// Of the elements; none: as declared. Registers of `.b` types are shown as integers without it.
  ptx::Type type = ptx::Type::none;
  friend bool operator==(const Watch&, const Watch&) = default;
};
inline constexpr std::uint64_t kMaxWatched = 64;

/// Reads `NAME`, `NAME[FIRST]`, `NAME[FIRST..LAST]`, each with `:TYPE` after it or without: "%f3",
/// "%r7[0..3]:f32", "tile[16..31]:f16". Types are u8 to u64, s8 to s64, f16, bf16, f32, f64.
/// Throws `Error` (Stage::Emulate, code "watch") that says what is expected.
[[nodiscard]] Watch parse_watch(std::string_view text);
/// As `parse_watch` reads it.
[[nodiscard]] std::string to_text(const Watch& watch);

/// Throws `Error` (Stage::Emulate, code "watch") for a name that is neither a register of the
/// kernel or of a function of its module, nor one of its shared variables, nor a buffer, and for
/// elements that the variable does not have; lists the names.
void check_watches(const emulator::Program& program, std::string_view kernel,
                   std::span<const Watch> watches, std::span<const Buffer> buffers);

/// The elements of a watch at one moment.
struct WatchedValues {
  enum class Kind : std::uint8_t {
    Register,  ///< element i is thread i of the block
    Shared,
    Global,
    Absent,  ///< a register of another function than the one that runs
  };
  std::string name;
  Kind kind = Kind::Absent;
  ptx::Type type = ptx::Type::none;
  std::uint64_t first = 0;          ///< element
  std::vector<std::uint64_t> bits;  ///< patterns, zero-extended
  std::vector<bool> known;          ///< false: never written, or the register holds no value here
};

/// The shortest text that gives the value back; predicates 0 or 1, `.b` types as unsigned.
[[nodiscard]] std::string value_text(std::uint64_t bits, ptx::Type type);
/// The value as a number; integers beyond 2^53 are rounded.
[[nodiscard]] double value_of(std::uint64_t bits, ptx::Type type) noexcept;

/// What watches show before an instruction. `device` is that of the launch.
[[nodiscard]] std::vector<WatchedValues> read_watches(const emulator::Moment& moment,
                                                      const emulator::Device& device,
                                                      std::span<const Watch> watches,
                                                      std::span<const Buffer> buffers);
/// The buffers among the watches, without a launch.
[[nodiscard]] std::vector<WatchedValues> read_watches(const emulator::Device& device,
                                                      std::span<const Watch> watches,
                                                      std::span<const Buffer> buffers);

}  // namespace ptxgen::inline v0::frames
