// ptxgen/emulator/host/arguments.hpp - kernel arguments written as text, their buffers and files
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"

namespace ptxgen::inline v0::emulator {

enum class ArgumentKind : std::uint8_t {
  Integer,  ///< u8:VALUE .. u64:VALUE, s8:VALUE .. s64:VALUE
  Float,    ///< f16:VALUE, bf16:VALUE, f32:VALUE, f64:VALUE
  Bytes,    ///< bytes:HEX
  Null,     ///< null
  In,       ///< in:FILE
  Out,      ///< out:BYTES:FILE
  InOut,    ///< inout:FILE:FILE2
  Zero,     ///< zero:BYTES:FILE
  Npy,      ///< npy:FILE, npy:FILE:FILE2
  Typed,    ///< npy:TYPE:SHAPE:FILE, print:TYPE:SHAPE: not initialised
  Random,   ///< random:TYPE:SHAPE[:SEED]
  Iota,     ///< iota:TYPE:SHAPE[:START[:STEP]]
  Fill,     ///< fill:TYPE:SHAPE:VALUE
};

/// One argument of `ptxgen run`, read from its text.
struct ArgumentSpec {
  std::string text;  ///< as it was written
  ArgumentKind kind{};
  /// Type of the value; from Typed on, of the elements.
  ptx::Type type = ptx::Type::none;
  std::vector<std::byte> value;      ///< of Integer, Float, Bytes, Null: little endian
  std::uint64_t bytes = 0;           ///< of Out, Zero and from Typed on: the size of the buffer
  std::vector<std::uint64_t> shape;  ///< from Typed on: elements in each dimension
  std::uint64_t first = 0;           ///< bits of Iota's START and Fill's VALUE; Random's SEED
  std::uint64_t step = 0;            ///< bits of Iota's STEP
  bool seeded = false;               ///< Random's SEED was given; else it is the argument's number
  bool print = false;                ///< print:SPEC: the caller prints the buffer after the launch
  std::string input;                 ///< of In, InOut and Npy; "-" is stdin
  std::string output;                ///< written after the launch; empty: not written

  /// Whether the argument is the address of a buffer.
  [[nodiscard]] bool is_buffer() const noexcept { return kind >= ArgumentKind::In; }
  /// Whether the buffer is read-only for kernels: an input that is neither written to a file nor
  /// printed.
  [[nodiscard]] bool is_readonly() const noexcept {
    return kind == ArgumentKind::In ||
           (kind >= ArgumentKind::Npy && kind != ArgumentKind::Typed && output.empty() && !print);
  }
};

/// Reads a spec. Integers: decimal with an optional minus, or `0x` and digits, which for signed
/// types are the bit pattern (`s8:0xff` is -1). Floats: a decimal number, rounded once to nearest
/// even; `nan`, `inf`, `-inf`; or `0x` and digits, the bit pattern. `BYTES` is decimal or `0x` and
/// digits, at least 1. The file of `out` and `zero` may be omitted, with its colon.
///
/// TYPE is one of those of VALUE, SHAPE is N, NxM, ... elements in C order. `random`: floats in
/// [-1, 1), integers of the type's full range, a different sequence for each seed. `iota`: START +
/// i * STEP, by default 0, 1, 2, ...; f16 and bf16 are rounded from f32. Files of `npy` are in
/// NumPy's format. `print:` before one of the last four kinds prints the buffer after the launch.
///
/// Throws `Error` (Stage::Launch, code "argument") that says what is expected.
[[nodiscard]] ArgumentSpec parse_argument(std::string_view text);

/// Checks a spec against its parameter: sizes must be equal, and integers do not match floats
/// unless the parameter is `.b`. Throws `Error` (Stage::Launch, code "argument") that names the
/// argument's number (from 1), the parameter and what is expected.
void check_argument(const ArgumentSpec& spec, const Program::Kernel::Parameter& parameter,
                    std::size_t number);

/// The same for all arguments of a kernel, and that there is one for each parameter.
void check_arguments(const Program::Kernel& kernel, std::span<const ArgumentSpec> specs);

/// The buffer of an argument before the launch.
struct BufferContent {
  ptx::Type type = ptx::Type::none;  ///< of its elements, none if unknown
  std::vector<std::uint64_t> shape;  ///< elements in each dimension, empty if unknown or a scalar
  std::uint64_t bytes = 0;           ///< at least 1
  std::string data;                  ///< bytes; empty: not initialised, or zeros
  std::string output_header;         ///< in front of the bytes in the output file
};
/// Reads or generates the content of the buffer of argument `number` (from 1). Throws `Error`:
/// Stage::Io for files, also for those of more than `max_bytes`; Stage::Launch, "argument" for a
/// file without content or more than `max_bytes`.
[[nodiscard]] BufferContent buffer_content(const ArgumentSpec& spec, std::size_t number,
                                           std::string_view parameter, std::uint64_t max_bytes);

/// The arguments of one launch: buffers on a device and the parameter block. Frees the buffers;
/// must not outlive the device.
class Arguments {
 public:
  /// One of the arguments' buffers, an allocation named "argument N (parameter NAME)".
  struct Buffer {
    std::size_t argument = 0;  ///< index of its spec
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::string output;  ///< file that `write_outputs` writes, or empty
    /// As of BufferContent.
    ptx::Type type = ptx::Type::none;
    std::vector<std::uint64_t> shape;
    std::string output_header;
  };

  /// Specs in the order of the kernel's parameters. Buffers that are `is_readonly` are protected,
  /// those of `out`, `print:TYPE:SHAPE` and `npy:TYPE:SHAPE:FILE` are not initialised.
  ///
  /// Throws `Error`: Stage::Launch, code "argument" for a wrong number of specs or one that does
  /// not fit (nothing is allocated then); Stage::Io for a file that cannot be read; as
  /// `Device::allocate`.
  Arguments(Device& device, const Program::Kernel& kernel, std::span<const ArgumentSpec> specs);
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
  ~Arguments();

  /// The parameter block, for `Launch::parameters`; lives as long as the object.
  [[nodiscard]] std::span<const std::byte> parameters() const noexcept { return block_; }
  [[nodiscard]] std::span<const Buffer> buffers() const noexcept { return buffers_; }

  /// Writes the buffers to the files of `out`, `inout`, `zero` and `npy`. Tries every file; throws
  /// the first `Error` (Stage::Io), the others in its `causes`.
  void write_outputs() const;

 private:
  void release() noexcept;

  Device* device_;
  std::vector<std::byte> block_;
  std::vector<Buffer> buffers_;
};

}  // namespace ptxgen::inline v0::emulator
