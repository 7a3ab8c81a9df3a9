// tests/producers/program.hpp - a program of another producer, as it is stored
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace ptxgen::test {

/// A value of a type ("f32"), the address of a buffer, or a structure of both.
struct ProducerArgument {
  std::string type;    ///< "buffer", "structure", or a type
  std::string buffer;  ///< name
  double number = 0;
  std::vector<ProducerArgument> fields;
};

/// Device memory: its bytes before the first launch, or none where it is not initialised.
struct ProducerBuffer {
  std::string type;
  std::size_t count = 0;
  std::vector<std::byte> bytes;
};

struct ProducerLaunch {
  std::string text;  ///< file name
  std::string entry;
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint32_t shared = 0;
  std::vector<ProducerArgument> arguments;
};

struct ProducerResult {
  double tolerance = 0;  ///< relative to the larger of 1 and the expected value
  std::vector<double> values;
};

/// Launches one after another on common memory, and what is in it afterwards by NumPy.
struct ProducerProgram {
  std::string name;
  std::map<std::string, ProducerBuffer> buffers;
  std::vector<ProducerLaunch> launches;
  std::map<std::string, ProducerResult> expected;
};

/// What `programs.json` of one producer says.
struct ProducerFolder {
  std::string producer;
  std::string version;
  std::filesystem::path folder;
  std::vector<ProducerProgram> programs;
};

/// Throws std::exception for a folder that does not hold what it should.
[[nodiscard]] ProducerFolder read_producer(const std::filesystem::path& folder);

[[nodiscard]] std::size_t bytes_of(const std::string& type);
/// Element `i` of memory that holds elements of a type.
[[nodiscard]] double element(const std::string& type, const std::vector<std::byte>& bytes,
                             std::size_t i);
/// A number as element of a type; what the type cannot hold exactly is cut off.
[[nodiscard]] std::vector<std::byte> packed(const std::string& type, double number);

}  // namespace ptxgen::test
